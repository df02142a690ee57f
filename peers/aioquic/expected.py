"""What RFC 9114 and RFC 9204 let a server do about a mistake of its client."""

from dataclasses import dataclass

import http3
from raw import Outcome

# Errors that a server may use for what it does not want to do.
REFUSALS = (
    "H3_EXCESSIVE_LOAD",
    "H3_REQUEST_REJECTED",
    "H3_REQUEST_CANCELLED",
    "H3_INTERNAL_ERROR",
    "H3_MESSAGE_ERROR",
)


@dataclass(frozen=True)
class Expected:
    """The outcomes that are right."""

    connection: tuple[str, ...] = ()
    stream: tuple[str, ...] = ()
    # Status codes from … to.
    statuses: tuple[tuple[int, int], ...] = ()
    nothing: bool = False

    def allows(self, outcome: Outcome) -> bool:
        name = http3.CODES.get(outcome.code, "")
        if outcome.kind == "connection":
            # A server may treat a stream error as a connection error, and may be less specific (section 8).
            return name in self.connection + self.stream or (
                name == "H3_GENERAL_PROTOCOL_ERROR" and bool(self.connection + self.stream)
            )
        if outcome.kind == "stream":
            return name in self.stream or (name == "H3_GENERAL_PROTOCOL_ERROR" and bool(self.stream))
        if outcome.kind == "response":
            return any(first <= outcome.code <= last for first, last in self.statuses)
        return outcome.kind == "nothing" and self.nothing

    def __str__(self) -> str:
        parts = [f"connection error {' or '.join(self.connection)}"] if self.connection else []
        parts += [f"stream error {' or '.join(self.stream)}"] if self.stream else []
        parts += [f"response {first}" + (f" to {last}" if last > first else "") for first, last in self.statuses]
        parts += ["nothing"] if self.nothing else []
        return ", or ".join(parts)


def closed(*names: str) -> Expected:
    """A connection error."""
    return Expected(connection=names)


# A malformed request: a stream error, before which the server may respond (section 4.1.2).
MALFORMED = Expected(stream=("H3_MESSAGE_ERROR",), statuses=((400, 499),))
# More than the server wants: it may refuse in any way, or do it.
TOO_MUCH = Expected(connection=("H3_EXCESSIVE_LOAD",), stream=REFUSALS, statuses=((200, 200), (400, 499)))
SERVED = Expected(statuses=((200, 200),))
