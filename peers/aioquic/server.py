"""An HTTP/3 server with the paths that all peers have."""

import asyncio
import json
import os
import signal
import sys

from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.asyncio.server import QuicServer
from aioquic.h3.connection import H3Connection
from aioquic.h3.events import DataReceived, H3Event, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ProtocolNegotiated, QuicEvent, StopSendingReceived, StreamReset

import http3

LARGEST_BODY = 1 << 30
# Bytes that are handed to aioquic at once: it has no limit of its own.
PIECE = 1 << 16
PAUSE_SECONDS = 0.2


class Protocol(QuicConnectionProtocol):
    """One connection."""

    def __init__(self, *arguments, **named) -> None:
        super().__init__(*arguments, **named)
        self.http: H3Connection | None = None
        self.tasks: dict[int, asyncio.Task] = {}
        # What an echo returns on its stream.
        self.echoes: set[int] = set()

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, ProtocolNegotiated):
            self.http = H3Connection(self._quic)
        if isinstance(event, (StreamReset, StopSendingReceived)):
            self.echoes.discard(event.stream_id)
            if task := self.tasks.pop(event.stream_id, None):
                task.cancel()
        if self.http is not None:
            for http_event in self.http.handle_event(event):
                self.http_event_received(http_event)

    def http_event_received(self, event: H3Event) -> None:
        if isinstance(event, HeadersReceived):
            self.begin(event)
        elif isinstance(event, DataReceived) and event.stream_id in self.echoes:
            self.send(event.stream_id, event.data, end=event.stream_ended)
        if getattr(event, "stream_ended", False):
            self.echoes.discard(event.stream_id)

    def begin(self, event: HeadersReceived) -> None:
        fields = dict(event.headers)
        method, path = fields.get(b":method"), fields.get(b":path", b"").decode()
        stream = event.stream_id
        if method == b"POST" and path == "/echo":
            self.send_headers(stream, 200, end=event.stream_ended)
            if not event.stream_ended:
                self.echoes.add(stream)
        elif method != b"GET":
            # Trailers of an echo come here too.
            if method is not None:
                self.send_headers(stream, 404, end=True)
        elif path.startswith("/bytes/") and path[7:].isdigit() and int(path[7:]) <= LARGEST_BODY:
            self.spawn(stream, self.send_bytes(stream, int(path[7:])))
        elif path == "/headers":
            values: dict[str, list[str]] = {}
            for name, value in event.headers:
                values.setdefault(name.decode(), []).append(value.decode())
            self.send_headers(stream, 200, [(b"content-type", b"application/json")])
            self.send(stream, json.dumps(values).encode(), end=True)
        elif path == "/trailers":
            self.send_headers(stream, 200)
            self.send(stream, b"body")
            self.http.send_headers(stream, [(b"x-trailer", b"after the body")], end_stream=True)
        elif path == "/slow":
            self.send_headers(stream, 200)
            self.send(stream, b"begin")
        elif path == "/goaway":
            self.spawn(stream, self.go_away(stream))
        else:
            self.send_headers(stream, 404, end=True)
        self.transmit()

    def spawn(self, stream: int, work) -> None:
        self.tasks[stream] = asyncio.ensure_future(work)
        self.tasks[stream].add_done_callback(lambda _: self.tasks.pop(stream, None))

    def send_headers(self, stream: int, status: int, fields=(), end: bool = False) -> None:
        self.http.send_headers(stream, [(b":status", str(status).encode()), *fields], end_stream=end)

    def send(self, stream: int, data: bytes, end: bool = False) -> None:
        self.http.send_data(stream, data, end_stream=end)

    async def send_bytes(self, stream: int, count: int) -> None:
        self.send_headers(stream, 200, [(b"content-length", str(count).encode())], end=count == 0)
        for start in range(0, count, PIECE):
            size = min(PIECE, count - start)
            self.send(stream, http3.pattern(start, size), end=start + size == count)
            self.transmit()
            # Another request, or a cancellation, may come between.
            await asyncio.sleep(0)
        self.transmit()

    async def go_away(self, stream: int) -> None:
        """Announces that later requests are refused, and then answers this one."""
        # aioquic sends no GOAWAY of its own.
        control = self.http._local_control_stream_id
        self._quic.send_stream_data(control, http3.frame(http3.GOAWAY, http3.integer(stream + 4)))
        self.transmit()
        await asyncio.sleep(PAUSE_SECONDS)
        self.send_headers(stream, 200)
        self.send(stream, b"end", end=True)
        self.transmit()


async def serve(listen: str, certificate: str, key: str) -> int:
    """Answers until SIGTERM, or until the end of the standard input."""
    configuration = QuicConfiguration(is_client=False, alpn_protocols=["h3"])
    configuration.load_cert_chain(certificate, key)
    host, port = listen.rsplit(":", 1)
    loop = asyncio.get_running_loop()
    transport, endpoint = await loop.create_datagram_endpoint(
        lambda: QuicServer(configuration=configuration, create_protocol=Protocol),
        local_addr=(host.strip("[]"), int(port)),
    )
    host, port = transport.get_extra_info("sockname")[:2]
    print(f"listening on [{host}]:{port}" if ":" in host else f"listening on {host}:{port}", flush=True)
    ended = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    reader = loop.run_in_executor(None, wait_for_end)
    reader.add_done_callback(lambda _: ended.set())
    await ended.wait()
    endpoint.close()
    sys.stdout.flush()
    # The thread that reads the standard input cannot be stopped.
    os._exit(0)


def wait_for_end() -> None:
    while os.read(0, 4096):
        pass
