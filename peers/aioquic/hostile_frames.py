"""Streams and frames out of place."""

import http3
from expected import SERVED, Expected, closed
from hostile_case import Case, on_control, on_request, right_request
from raw import Connection, Outcome

UNEXPECTED = closed("H3_FRAME_UNEXPECTED")
CRITICAL = closed("H3_CLOSED_CRITICAL_STREAM")
FRAME_ERROR = closed("H3_FRAME_ERROR")
ID_ERROR = closed("H3_ID_ERROR")
CREATION = closed("H3_STREAM_CREATION_ERROR")
UNKNOWN_STREAMS = 200


def second(kind: int):
    async def run(peer: Connection) -> Outcome:
        peer.open_streams()
        peer.uni(kind, http3.settings() if kind == http3.CONTROL else b"")
        return await right_request(peer)

    return run


def ends(name: str, is_reset: bool):
    """Ends or resets a stream that has to stay open."""

    async def run(peer: Connection) -> Outcome:
        peer.open_streams()
        # So that the server knows the stream's type.
        await peer.server_settings()
        await peer.ping()
        if is_reset:
            peer.reset(getattr(peer, name), http3.NUMBERS["H3_NO_ERROR"])
        else:
            peer.send(getattr(peer, name), b"", end=True)
        return await right_request(peer)

    return run


async def push_stream(peer: Connection) -> Outcome:
    peer.open_streams()
    peer.uni(http3.PUSH, http3.integer(0))
    return await right_request(peer)


async def unknown_streams(peer: Connection) -> Outcome:
    peer.open_streams()
    for number in range(UNKNOWN_STREAMS):
        kind = http3.RESERVED_TYPES[number % len(http3.RESERVED_TYPES)]
        peer.uni(kind, b"unknown", end=number % 2 == 0)
    outcome = await right_request(peer)
    # aioquic keeps the rest until the server allows more streams.
    allowed = peer._quic._remote_max_streams_uni
    peer.note = f"{min(allowed - 3, UNKNOWN_STREAMS)} streams were allowed"
    return outcome


def grease() -> bytes:
    return b"".join(http3.frame(kind, b"x" * size) for size, kind in enumerate(http3.RESERVED_TYPES))


def on_both(name: str, kind: int, payload: bytes, source: str) -> tuple[Case, Case]:
    """A frame that may be on neither stream."""
    frame = http3.frame(kind, payload)
    return (
        on_control(f"{name}_on_control", UNEXPECTED, source, frame),
        on_request(f"{name}_on_request", UNEXPECTED, source, lambda peer: get(peer) + frame),
    )


def get(peer: Connection) -> bytes:
    return http3.headers(peer.fields("GET", "/bytes/10"))


def post(peer: Connection, *more: tuple[bytes, bytes]) -> bytes:
    return http3.headers(peer.fields("POST", "/echo", *more))


TRAILERS = http3.headers([(b"x-trailer", b"value")])

CASES = (
    Case("second_control_stream", CREATION, "RFC 9114, 6.2.1", second(http3.CONTROL)),
    Case("second_encoder_stream", CREATION, "RFC 9204, 4.2", second(http3.ENCODER)),
    Case("second_decoder_stream", CREATION, "RFC 9204, 4.2", second(http3.DECODER)),
    Case("push_stream_from_client", CREATION, "RFC 9114, 6.2.2", push_stream),
    Case("closed_control_stream", CRITICAL, "RFC 9114, 6.2.1", ends("control", is_reset=False)),
    Case("reset_control_stream", CRITICAL, "RFC 9114, 6.2.1", ends("control", is_reset=True)),
    Case("closed_encoder_stream", CRITICAL, "RFC 9204, 4.2", ends("encoder", is_reset=False)),
    Case("closed_decoder_stream", CRITICAL, "RFC 9204, 4.2", ends("decoder", is_reset=False)),
    Case("unknown_uni_streams", SERVED, "RFC 9114, 6.2.3 and 9", unknown_streams),
    on_control("settings_twice", UNEXPECTED, "RFC 9114, 7.2.4", http3.settings()),
    on_control(
        "settings_missing", closed("H3_MISSING_SETTINGS"), "RFC 9114, 6.2.1", http3.frame(13, b"\x08"), settings=b""
    ),
    on_control(
        "settings_of_http2",
        closed("H3_SETTINGS_ERROR"),
        "RFC 9114, 7.2.4.1",
        b"",
        settings=http3.settings((2, 1)),
    ),
    # A receiver may look for a setting that occurs twice.
    on_control(
        "setting_twice",
        Expected(connection=("H3_SETTINGS_ERROR",), statuses=((200, 200),)),
        "RFC 9114, 7.2.4",
        b"",
        settings=http3.settings((6, 100_000), (6, 100_000)),
    ),
    on_control(
        "settings_truncated", FRAME_ERROR, "RFC 9114, 7.1", b"", settings=http3.frame(http3.SETTINGS, b"\x06\x80")
    ),
    on_control("unknown_frames_on_control", SERVED, "RFC 9114, 7.2.8 and 9", grease()),
    on_request(
        "unknown_frames_on_request",
        SERVED,
        "RFC 9114, 7.2.8 and 9",
        lambda peer: grease() + post(peer) + grease() + http3.frame(http3.DATA, b"body") + grease(),
    ),
    on_request(
        "data_before_headers", UNEXPECTED, "RFC 9114, 4.1", lambda peer: http3.frame(http3.DATA, b"body") + get(peer)
    ),
    on_request(
        "data_after_trailers",
        UNEXPECTED,
        "RFC 9114, 4.1",
        lambda peer: post(peer) + TRAILERS + http3.frame(http3.DATA, b"body"),
    ),
    on_request(
        "headers_after_trailers", UNEXPECTED, "RFC 9114, 4.1", lambda peer: post(peer) + TRAILERS + TRAILERS
    ),
    *(
        case
        for kind in http3.HTTP2_FRAMES
        for case in on_both(f"http2_frame_{kind}", kind, b"\0" * 8, "RFC 9114, 7.2.8")
    ),
    *on_both("push_promise", http3.PUSH_PROMISE, b"\0" + http3.STATIC_ONLY, "RFC 9114, 7.2.5"),
    on_control("data_on_control", UNEXPECTED, "RFC 9114, 7.2.1", http3.frame(http3.DATA, b"body")),
    on_control("headers_on_control", UNEXPECTED, "RFC 9114, 7.2.2", TRAILERS),
    on_request("settings_on_request", UNEXPECTED, "RFC 9114, 7.2.4", lambda peer: get(peer) + http3.settings()),
    on_request(
        "goaway_on_request",
        UNEXPECTED,
        "RFC 9114, 7.2.6",
        lambda peer: get(peer) + http3.frame(http3.GOAWAY, b"\0"),
    ),
    on_request(
        "max_push_id_on_request",
        UNEXPECTED,
        "RFC 9114, 7.2.7",
        lambda peer: get(peer) + http3.frame(http3.MAX_PUSH_ID, b"\0"),
    ),
    on_control(
        "max_push_id_decreasing",
        ID_ERROR,
        "RFC 9114, 7.2.7",
        http3.frame(http3.MAX_PUSH_ID, b"\x08") + http3.frame(http3.MAX_PUSH_ID, b"\x07"),
    ),
    on_control("cancel_push_of_nothing", ID_ERROR, "RFC 9114, 7.2.3", http3.frame(http3.CANCEL_PUSH, b"\x05")),
    on_control("goaway_garbage", FRAME_ERROR, "RFC 9114, 7.1", http3.frame(http3.GOAWAY, b"\0garbage")),
    on_control("goaway_empty", FRAME_ERROR, "RFC 9114, 7.1", http3.frame(http3.GOAWAY)),
    on_control(
        "goaway_increasing",
        ID_ERROR,
        "RFC 9114, 5.2",
        http3.frame(http3.GOAWAY, b"\x04") + http3.frame(http3.GOAWAY, b"\x08"),
    ),
    on_request("headers_truncated", FRAME_ERROR, "RFC 9114, 7.1", lambda peer: get(peer)[:-5]),
    # A DATA frame of 1000 bytes, of which ten come.
    on_request(
        "frame_length_beyond_stream",
        FRAME_ERROR,
        "RFC 9114, 7.1",
        lambda peer: post(peer) + http3.integer(http3.DATA) + http3.integer(1000) + b"ten bytes.",
    ),
    on_request("empty_stream", Expected(stream=("H3_REQUEST_INCOMPLETE",)), "RFC 9114, 4.1", lambda _: b""),
)
