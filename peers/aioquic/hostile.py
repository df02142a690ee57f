"""An HTTP/3 client that breaks rules, and says what the server did.

It prints a line per case:

    NAME: OUTCOME; then OUTCOME OF A REQUEST ON THE SAME CONNECTION; new connection: OUTCOME: VERDICT

The verdict is "right", or "WRONG: " and what the RFCs ask for.
"""

import asyncio
import sys

from aioquic.asyncio.client import connect

import http3
from client import configure
from hostile_cases import CASES, Case
from raw import Connection, Outcome

# The time of a whole case.
LIMIT_SECONDS = 60


def table() -> list[str]:
    """A line per case: its name, the outcomes that are right, and the section that says so."""
    return [f"hostile {case.name}: {case.expected} ({case.source})" for case in CASES]


async def attack(case: Case, open_connection) -> tuple[bool, str]:
    """Runs a case. Returns whether the server did right, and what it did."""
    async with open_connection() as peer:
        outcome = await asyncio.wait_for(case.run(peer), LIMIT_SECONDS)
        right = case.expected.allows(outcome)
        text = str(outcome)
        if note := peer.note:
            text += f" ({note})"
        # Only a connection error ends the connection.
        if outcome.kind != "connection":
            after = await request(peer)
            # Streams have no order between them: a connection error may come after a response.
            is_late = after.kind == "connection" and case.expected.allows(after)
            right = is_late or right and is_served(after)
            text += f"; then {after}"
        peer.close(error_code=http3.NUMBERS["H3_NO_ERROR"])
    async with open_connection() as peer:
        peer.open_streams()
        fresh = await request(peer)
        peer.close(error_code=http3.NUMBERS["H3_NO_ERROR"])
    return right and is_served(fresh), f"{text}; new connection: {fresh}"


def is_served(outcome: Outcome) -> bool:
    return outcome.kind == "response" and outcome.code == 200


async def request(peer: Connection) -> Outcome:
    stream = peer.request(http3.headers(peer.fields("GET", "/bytes/10")), end=True)
    return await peer.outcome(stream)


async def run(to: str, ca: str, name: str, names: list[str], at_once: int) -> int:
    """Runs cases, some at once, and prints a line for each; returns 1 if the server did one wrong."""
    known = {case.name: case for case in CASES}
    names = list(known) if names == ["all"] else names
    if unknown := [case for case in names if case not in known]:
        print(f"no cases {unknown}; there are: {', '.join(known)}", file=sys.stderr)
        return 2
    host, port = to.rsplit(":", 1)

    def open_connection():
        return connect(host.strip("[]"), int(port), configuration=configure(ca, name), create_protocol=Connection)

    free = asyncio.Semaphore(at_once)

    async def run_one(case: str) -> bool:
        async with free:
            try:
                right, text = await attack(known[case], open_connection)
            except (ConnectionError, asyncio.TimeoutError) as reason:
                right, text = False, f"{type(reason).__name__} {reason}"
        verdict = "right" if right else f"WRONG: {known[case].expected} ({known[case].source})"
        print(f"{case}: {text}: {verdict}", flush=True)
        return right

    return 0 if all(await asyncio.gather(*map(run_one, names))) else 1
