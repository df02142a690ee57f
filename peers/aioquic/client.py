"""An HTTP/3 client that runs the cases that all peers have."""

import asyncio
import json
import sys
from dataclasses import dataclass, field

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, ProtocolNegotiated, QuicEvent, StreamDataReceived, StreamReset

import http3

LIMIT_SECONDS = 30


class Failed(Exception):
    """The server did otherwise than the case asks for."""


@dataclass
class Response:
    """What came on a request's stream."""

    status: int = 0
    headers: dict[bytes, bytes] = field(default_factory=dict)
    trailers: dict[bytes, bytes] = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)
    reset: int | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    changed: asyncio.Event = field(default_factory=asyncio.Event)


class Protocol(QuicConnectionProtocol):
    """One connection."""

    def __init__(self, *arguments, **named) -> None:
        super().__init__(*arguments, **named)
        self.http: H3Connection | None = None
        self.responses: dict[int, Response] = {}
        self.name = ""
        self.closed: str | None = None
        # aioquic ignores GOAWAY: the server's unidirectional streams are read here too.
        self.server_streams: dict[int, bytes] = {}
        self.goaway: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, ProtocolNegotiated):
            self.http = H3Connection(self._quic)
        if isinstance(event, StreamDataReceived) and event.stream_id % 4 == 3:
            self.look_for_goaway(event.stream_id, event.data)
        if isinstance(event, StreamReset) and event.stream_id in self.responses:
            self.responses[event.stream_id].reset = event.error_code
            self.responses[event.stream_id].ended.set()
            self.responses[event.stream_id].changed.set()
        if isinstance(event, ConnectionTerminated):
            self.closed = f"{event.error_code:#x} {event.reason_phrase}"
            for response in self.responses.values():
                response.ended.set()
                response.changed.set()
        if self.http is None:
            return
        for http_event in self.http.handle_event(event):
            response = self.responses.get(getattr(http_event, "stream_id", -1))
            if response is None:
                continue
            if isinstance(http_event, HeadersReceived):
                fields = dict(http_event.headers)
                if response.status:
                    response.trailers = fields
                else:
                    response.status, response.headers = int(fields[b":status"]), fields
            elif isinstance(http_event, DataReceived):
                response.body += http_event.data
            response.changed.set()
            if http_event.stream_ended:
                response.ended.set()

    def look_for_goaway(self, stream: int, data: bytes) -> None:
        rest = self.server_streams[stream] = self.server_streams.get(stream, b"") + data
        kind = http3.pull_integer(rest)
        if kind is None or kind[0] != http3.CONTROL:
            return
        rest = kind[1]
        while found := http3.pull_frame(rest):
            frame, payload, rest = found
            if frame == http3.GOAWAY and not self.goaway.done():
                self.goaway.set_result(http3.pull_integer(payload)[0])

    def begin(self, method: str, path: str, fields: http3.Fields = (), end: bool = True) -> tuple[int, Response]:
        stream = self._quic.get_next_available_stream_id()
        response = self.responses[stream] = Response()
        request = [
            (b":method", method.encode()),
            (b":scheme", b"https"),
            (b":authority", self.name.encode()),
            (b":path", path.encode()),
            *fields,
        ]
        self.http.send_headers(stream, request, end_stream=end)
        self.transmit()
        return stream, response

    async def request(self, method: str, path: str, fields: http3.Fields = (), body: bytes | None = None) -> Response:
        stream, response = self.begin(method, path, fields, end=body is None)
        if body is not None:
            self.http.send_data(stream, body, end_stream=True)
            self.transmit()
        await response.ended.wait()
        if response.reset is not None or self.closed is not None:
            raise Failed(f"reset with {response.reset}, connection closed with {self.closed}")
        return response

    def cancel(self, stream: int, is_sending: bool) -> None:
        if is_sending:
            self._quic.reset_stream(stream, http3.REQUEST_CANCELLED)
        self._quic.stop_stream(stream, http3.REQUEST_CANCELLED)
        self.transmit()


def check(condition: bool, text: str) -> None:
    if not condition:
        raise Failed(text)


async def check_bytes(peer: Protocol, count: int) -> None:
    response = await peer.request("GET", f"/bytes/{count}")
    check(response.status == 200, f"status {response.status}")
    check(bytes(response.body) == http3.pattern(0, count), f"{len(response.body)} bytes, or others than asked for")


async def get(peer: Protocol) -> None:
    for count in (0, 1, 1000, 1_000_000):
        await check_bytes(peer, count)


async def post(peer: Protocol) -> None:
    sent = http3.pattern(0, 1_000_000)
    response = await peer.request("POST", "/echo", body=sent)
    check(bytes(response.body) == sent, f"the echo has {len(response.body)} bytes or differs")


async def several(peer: Protocol) -> None:
    await asyncio.gather(*(check_bytes(peer, 1000 * number + 1) for number in range(50)))


async def headers(peer: Protocol) -> None:
    long = b"long" * 1000
    fields = [(b"x-test", b"value"), (b"x-long", long), (b"x-empty", b""), (b"x-twice", b"one"), (b"x-twice", b"two")]
    response = await peer.request("GET", "/headers", fields)
    echo = json.loads(response.body)
    for name, value in (("x-test", "value"), ("x-long", long.decode()), ("x-empty", ""), ("x-twice", "one, two")):
        found = ", ".join(echo.get(name, ["absent"]))
        check(found == value, f"the server read {found!r} as {name}")


async def trailers(peer: Protocol) -> None:
    response = await peer.request("GET", "/trailers")
    check(response.body == b"body", f"body {response.body!r}")
    check(response.trailers.get(b"x-trailer") == b"after the body", f"trailers {response.trailers}")


async def not_found(peer: Protocol) -> None:
    response = await peer.request("GET", "/absent")
    check(response.status == 404, f"status {response.status}")


async def cancel(peer: Protocol) -> None:
    stream, response = peer.begin("GET", "/slow")
    while response.body != b"begin" and not response.ended.is_set():
        response.changed.clear()
        await response.changed.wait()
    check(not response.ended.is_set(), "the response ended")
    peer.cancel(stream, is_sending=False)
    # A request whose body is not complete.
    stream, response = peer.begin("POST", "/echo", end=False)
    peer.http.send_data(stream, b"begin", end_stream=False)
    peer.transmit()
    while response.body != b"begin" and not response.ended.is_set():
        response.changed.clear()
        await response.changed.wait()
    check(not response.ended.is_set(), "the echo ended")
    peer.cancel(stream, is_sending=True)
    await check_bytes(peer, 1000)


async def goaway(peer: Protocol) -> None:
    """The server announces its end, and answers the open request."""
    stream, response = peer.begin("GET", "/goaway")
    identifier = await peer.goaway
    check(identifier > stream and identifier % 4 == 0, f"GOAWAY with {identifier}")
    await response.ended.wait()
    check(response.body == b"end" and response.reset is None, f"the open request got {response}")


CASES = {
    "http_get": get,
    "http_post": post,
    "http_several": several,
    "http_headers": headers,
    "http_trailers": trailers,
    "http_not_found": not_found,
    "http_cancel": cancel,
    "http_goaway": goaway,
}


def configure(ca: str, name: str) -> QuicConfiguration:
    configuration = QuicConfiguration(
        is_client=True, alpn_protocols=["h3"], server_name=name, idle_timeout=LIMIT_SECONDS
    )
    configuration.load_verify_locations(ca)
    return configuration


async def run(to: str, ca: str, name: str, names: list[str]) -> int:
    """Runs cases, each over a connection of its own, and prints a line for each."""
    host, port = to.rsplit(":", 1)
    names = list(CASES) if names in (["all"], ["http"]) else names
    failed = 0
    for case in names:
        if case not in CASES:
            print(f"no case {case!r}; there are: {', '.join(CASES)}", file=sys.stderr)
            return 2
        try:
            async with connect(
                host.strip("[]"), int(port), configuration=configure(ca, name), create_protocol=Protocol
            ) as peer:
                peer.name = name
                await asyncio.wait_for(CASES[case](peer), LIMIT_SECONDS)
                # RFC 9114, section 5.2.
                peer.close(error_code=http3.NUMBERS["H3_NO_ERROR"])
            print(f"{case}: passed", flush=True)
        except (Failed, ConnectionError, asyncio.TimeoutError, ValueError) as reason:
            failed += 1
            print(f"{case}: failed: {type(reason).__name__}: {reason}", flush=True)
    return 1 if failed else 0
