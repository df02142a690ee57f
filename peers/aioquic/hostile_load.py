"""Too much, too slow, or given up."""

import asyncio

import http3
from expected import REFUSALS, SERVED, TOO_MUCH, Expected
from hostile_case import Case
from hostile_frames import post
from raw import QUIET_SECONDS, Connection, Outcome

HUGE_HEADER = 1_000_000
MANY_HEADERS = 10_000
RESETS = 10_000
FLOOD_SECONDS = 40
# Requests that are sent before they are reset.
BATCH = 20
SLOW_BYTES = 20
SLOW_SECONDS = 0.1
LARGE = 10_000_000


async def with_fields(peer: Connection, more: http3.Fields) -> Outcome:
    peer.open_streams()
    settings = await peer.server_settings()
    data = http3.headers(peer.fields("GET", "/bytes/10", *more))
    peer.note = f"{len(data)} bytes, limit {settings.get(http3.MAX_FIELD_SECTION_SIZE, 'unlimited')}"
    return await peer.outcome(peer.request(data, end=True))


async def huge_headers(peer: Connection) -> Outcome:
    return await with_fields(peer, [(b"x-huge", b"x" * HUGE_HEADER)])


async def many_headers(peer: Connection) -> Outcome:
    return await with_fields(peer, [(b"x-%d" % number, b"value") for number in range(MANY_HEADERS)])


async def huge_headers_frame(peer: Connection) -> Outcome:
    """A HEADERS frame that says it has a gigabyte, of which a megabyte comes."""
    peer.open_streams()
    data = http3.integer(http3.HEADERS) + http3.integer(1 << 30) + http3.section(peer.fields("GET", "/bytes/10"))
    return await peer.outcome(peer.request(data + http3.literal(b"x-huge", b"x" * HUGE_HEADER)))


async def huge_unknown_frame(peer: Connection) -> Outcome:
    """An unknown frame of a megabyte before the request: it has to be ignored, and needs no memory."""
    peer.open_streams()
    frame = http3.frame(http3.RESERVED_TYPES[2], b"x" * HUGE_HEADER)
    return await peer.outcome(peer.request(frame + http3.headers(peer.fields("GET", "/bytes/10")), end=True))


async def reset_after_complete_request(peer: Connection) -> Outcome:
    peer.open_streams()
    stream = peer.request(http3.headers(peer.fields("GET", f"/bytes/{LARGE}")), end=True)
    peer.reset(stream)
    outcome = await peer.outcome(stream)
    if outcome.kind == "nothing":
        peer.stop(stream)
    return outcome


async def stop_sending_response(peer: Connection) -> Outcome:
    peer.open_streams()
    stream = peer.request(http3.headers(peer.fields("GET", f"/bytes/{LARGE}")), end=True)
    await peer.wait(lambda: stream in peer.answers)
    peer.stop(stream)
    return await peer.outcome(stream)


async def flood_of_resets(peer: Connection) -> Outcome:
    """Requests that are cancelled at once, as many as the server lets through."""
    peer.open_streams()
    sent = 0
    now = asyncio.get_running_loop().time
    end, progress = now() + FLOOD_SECONDS, now()
    while sent < RESETS and peer.closed is None and now() < end and now() < progress + QUIET_SECONDS:
        streams = []
        while len(streams) < BATCH and peer.may_request():
            streams.append(peer._quic.get_next_available_stream_id())
            data = http3.headers(peer.fields("GET", "/bytes/100000"))
            peer._quic.send_stream_data(streams[-1], data, True)
        peer.transmit()
        for stream in streams:
            peer._quic.reset_stream(stream, http3.REQUEST_CANCELLED)
            peer._quic.stop_stream(stream, http3.REQUEST_CANCELLED)
        peer.transmit()
        sent += len(streams)
        progress = now() if streams else progress
        # No event tells of further streams that the server allows.
        await asyncio.sleep(0 if streams else 0.005)
    peer.note = f"{sent} requests reset"
    if peer.closed is not None:
        return peer.closed
    return await peer.outcome(peer.request(http3.headers(peer.fields("GET", "/bytes/10")), end=True), 10)


async def slow_body(peer: Connection) -> Outcome:
    peer.open_streams()
    stream = peer.request(post(peer, (b"content-length", str(SLOW_BYTES).encode())))
    for _ in range(SLOW_BYTES):
        await asyncio.sleep(SLOW_SECONDS)
        peer.send(stream, http3.frame(http3.DATA, b"x"))
    peer.send(stream, b"", end=True)
    return await peer.outcome(stream)


async def unfinished_bodies(peer: Connection) -> Outcome:
    """Requests without an end, up to half of those that the server allows; they must not stop others."""
    peer.open_streams()
    await peer.server_settings()
    count = min(peer._quic._remote_max_streams_bidi // 2, 100)
    for _ in range(count):
        peer.request(post(peer) + http3.frame(http3.DATA, b"x"))
    peer.note = f"{count} requests left open"
    return await peer.outcome(peer.request(http3.headers(peer.fields("GET", "/bytes/10")), end=True))


ABANDONED = Expected(stream=(*REFUSALS, "H3_NO_ERROR"), statuses=((200, 200), (400, 499)), nothing=True)

CASES = (
    Case("huge_headers", TOO_MUCH, "RFC 9114, 4.2.2", huge_headers),
    Case("many_headers", TOO_MUCH, "RFC 9114, 4.2.2 and 10.5.1", many_headers),
    Case(
        "huge_headers_frame",
        Expected(("H3_EXCESSIVE_LOAD",), REFUSALS, ((400, 499),), nothing=True),
        "RFC 9114, 10.5.1",
        huge_headers_frame,
    ),
    Case("huge_unknown_frame", SERVED, "RFC 9114, 9", huge_unknown_frame),
    Case("reset_after_complete_request", ABANDONED, "RFC 9114, 4.1.1", reset_after_complete_request),
    Case("stop_sending_response", ABANDONED, "RFC 9114, 4.1.1; RFC 9000, 3.5", stop_sending_response),
    Case(
        "flood_of_resets",
        Expected(connection=("H3_EXCESSIVE_LOAD",), statuses=((200, 200),)),
        "RFC 9114, 10.5",
        flood_of_resets,
    ),
    Case("slow_body", Expected(stream=REFUSALS, statuses=((200, 200), (400, 499))), "RFC 9114, 10.5", slow_body),
    Case("unfinished_bodies", SERVED, "RFC 9114, 4.1", unfinished_bodies),
)
