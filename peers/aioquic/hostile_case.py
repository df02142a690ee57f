"""A hostile case: what it sends, and what the RFCs ask the server to do."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import http3
from expected import Expected
from raw import Connection, Outcome


@dataclass(frozen=True)
class Case:
    """One mistake."""

    name: str
    expected: Expected
    # The section.
    source: str
    run: Callable[[Connection], Awaitable[Outcome]]


def on_request(name: str, expected: Expected, source: str, write: Callable[[Connection], bytes]) -> Case:
    """A case that writes something wrong on a request's stream."""

    async def run(peer: Connection) -> Outcome:
        peer.open_streams()
        return await peer.outcome(peer.request(write(peer), end=True))

    return Case(name, expected, source, run)


def on_control(name: str, expected: Expected, source: str, data: bytes, settings: bytes = http3.settings()) -> Case:
    """A case that writes something wrong on the control stream, and then a right request."""

    async def run(peer: Connection) -> Outcome:
        peer.open_streams(settings + data)
        return await right_request(peer)

    return Case(name, expected, source, run)


async def right_request(peer: Connection) -> Outcome:
    """Waits a moment for an error; where none comes, tells what a right request gets."""
    if not await peer.wait(lambda: peer.closed is not None, 0.3):
        return await peer.outcome(peer.request(http3.headers(peer.fields("GET", "/bytes/10")), end=True))
    return peer.closed
