"""A QUIC connection on which HTTP/3 is written byte by byte."""

import asyncio
from dataclasses import dataclass

import pylsqpack
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.quic.events import ConnectionTerminated, QuicEvent, StopSendingReceived, StreamDataReceived, StreamReset

import http3

# A server that says nothing for so long is taken to accept what it got.
QUIET_SECONDS = 5


@dataclass(frozen=True)
class Outcome:
    """What the server did."""

    # "connection" for a connection error, "transport" for one of QUIC, "stream" for a reset, "response", "nothing".
    kind: str
    # An error code, or the response's status.
    code: int = 0
    text: str = ""

    def __str__(self) -> str:
        if self.kind == "nothing":
            return f"nothing within {QUIET_SECONDS} s"
        if self.kind == "response":
            return f"response {self.code}, {self.text}"
        name = f" {http3.CODES[self.code]}" if self.code in http3.CODES and self.kind != "transport" else ""
        verb = {"stream": "stream reset", "connection": "connection closed", "transport": "QUIC error"}[self.kind]
        return f"{verb} with {self.code:#x}{name}{f' ({self.text})' if self.text else ''}"


@dataclass
class Answer:
    """What came back on a request's stream."""

    data: bytes = b""
    ended: bool = False
    reset: int | None = None
    stopped: int | None = None


class Connection(QuicConnectionProtocol):
    """One connection. It opens no stream of its own."""

    def __init__(self, *arguments, **named) -> None:
        super().__init__(*arguments, **named)
        self.answers: dict[int, Answer] = {}
        self.closed: Outcome | None = None
        self.changed = asyncio.Event()
        self.server_streams: dict[int, bytes] = {}
        self.control = self.encoder = self.decoder = -1
        # What a case has to say beside the outcome.
        self.note = ""

    def quic_event_received(self, event: QuicEvent) -> None:
        stream = getattr(event, "stream_id", -1)
        if isinstance(event, StreamDataReceived) and stream % 4 == 3:
            self.server_streams[stream] = self.server_streams.get(stream, b"") + event.data
        elif isinstance(event, ConnectionTerminated):
            self.note_end(event)
        elif stream >= 0:
            answer = self.answers.setdefault(stream, Answer())
            if isinstance(event, StreamDataReceived):
                answer.data += event.data
                answer.ended |= event.end_stream
            elif isinstance(event, StreamReset):
                answer.reset = event.error_code
            elif isinstance(event, StopSendingReceived):
                answer.stopped = event.error_code
        self.changed.set()

    def datagram_received(self, *arguments) -> None:
        super().datagram_received(*arguments)
        # aioquic tells of a close only after the draining period, which is long where the server was slow before.
        event = getattr(self._quic, "_close_event", None)
        if event is not None and self.closed is None:
            self.note_end(event)
            self.changed.set()

    def note_end(self, event: ConnectionTerminated) -> None:
        kind = "connection" if event.frame_type is None else "transport"
        self.closed = Outcome(kind, event.error_code, event.reason_phrase)

    def fields(self, method: str, path: str, *more: tuple[bytes, bytes]) -> http3.Fields:
        """A request's fields."""
        name = self._quic.configuration.server_name
        return [
            (b":method", method.encode()),
            (b":scheme", b"https"),
            (b":authority", name.encode()),
            (b":path", path.encode()),
            *more,
        ]

    def uni(self, kind: int, data: bytes = b"", end: bool = False) -> int:
        """Opens a unidirectional stream."""
        stream = self._quic.get_next_available_stream_id(is_unidirectional=True)
        self.send(stream, http3.integer(kind) + data, end)
        return stream

    def request(self, data: bytes, end: bool = False) -> int:
        """Opens a request's stream."""
        stream = self._quic.get_next_available_stream_id()
        self.send(stream, data, end)
        return stream

    def may_request(self) -> bool:
        """Whether the server allows a further request now; aioquic would keep it until then."""
        return self._quic.get_next_available_stream_id() < 4 * self._quic._remote_max_streams_bidi

    def send(self, stream: int, data: bytes, end: bool = False) -> None:
        # A stream that the server has stopped takes nothing more.
        if self.closed is None and self.answers.get(stream, Answer()).stopped is None:
            self._quic.send_stream_data(stream, data, end)
            self.transmit()

    def reset(self, stream: int, code: int = http3.REQUEST_CANCELLED) -> None:
        self._quic.reset_stream(stream, code)
        self.transmit()

    def stop(self, stream: int, code: int = http3.REQUEST_CANCELLED) -> None:
        self._quic.stop_stream(stream, code)
        self.transmit()

    def open_streams(self, settings: bytes = http3.settings()) -> None:
        """Opens the streams of every connection. By default the server may use no dynamic table."""
        self.control = self.uni(http3.CONTROL, settings)
        self.encoder = self.uni(http3.ENCODER)
        self.decoder = self.uni(http3.DECODER)

    async def server_settings(self) -> dict[int, int]:
        """The server's settings; empty where it sends none."""

        def find() -> dict[int, int] | None:
            for data in self.server_streams.values():
                kind = http3.pull_integer(data)
                if kind is None or kind[0] != http3.CONTROL or (found := http3.pull_frame(kind[1])) is None:
                    continue
                _, rest, _ = found
                settings = {}
                while rest:
                    name, rest = http3.pull_integer(rest)
                    settings[name], rest = http3.pull_integer(rest)
                return settings
            return None

        await self.wait(lambda: find() is not None)
        return find() or {}

    async def wait(self, is_true, quiet: float = QUIET_SECONDS) -> bool:
        """Waits until something is true, the connection closes, or nothing comes for a while."""
        while not is_true() and self.closed is None:
            self.changed.clear()
            try:
                await asyncio.wait_for(self.changed.wait(), quiet)
            except asyncio.TimeoutError:
                break
        return is_true()

    async def outcome(self, stream: int | None, quiet: float = QUIET_SECONDS) -> Outcome:
        """Waits for what the server does with a stream, or with the connection."""

        def answer() -> Answer:
            return self.answers.get(stream, Answer())

        await self.wait(lambda: answer().ended or answer().reset is not None, quiet)
        if self.closed is None and not answer().ended and answer().reset is None and answer().stopped is not None:
            return Outcome("stream", answer().stopped, "by STOP_SENDING")
        if answer().ended and self.closed is None:
            # A response may come before a connection error.
            await self.wait(lambda: False, 0.2)
        if self.closed is not None:
            return self.closed
        if answer().reset is not None:
            return Outcome("stream", answer().reset)
        return read_response(answer().data) if answer().ended else Outcome("nothing")


def read_response(data: bytes) -> Outcome:
    """The status and the length of a complete response."""
    status, body = 0, 0
    while found := http3.pull_frame(data):
        kind, payload, data = found
        if kind == http3.HEADERS and not status:
            _, fields = pylsqpack.Decoder(0, 0).feed_header(0, payload)
            status = int(dict(fields)[b":status"])
            # Interim responses come before the final one.
            status = status if status >= 200 else 0
        elif kind == http3.DATA:
            body += len(payload)
    return Outcome("response", status, f"{body} bytes" if status else "an end without a response")
