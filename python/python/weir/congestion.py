"""Congestion controls in Python: what `weir.run(congestion=...)` takes. docs/python.md has the reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from weir._weir import Ack, Context, Deadline, Loss, Sent


class Controller(Protocol):
    """The congestion control of one connection.

    It has an attribute `window_bytes`, read after each event, and may have `rate_bps`, a pacing rate; if so, it sets
    it when it is created, to None without pacing. It may also have these methods, which are called if they exist:

        on_sent(sent: Sent)                    a packet was sent
        on_spurious_loss(loss: Loss)           packets that were declared lost have arrived after all
        on_idle_restart(now_ns: int)           sending goes on after a pause of more than a time-out
        on_deadline(deadline: Deadline | None) what remains of a transfer with a deadline
        on_packet_size(size_bytes: int)        full packets have another size

    With `wants_delivery = True`, acknowledgments have a delivery rate.
    """

    #: The window in bytes; `math.inf` for a controller that only sets a rate.
    window_bytes: Any

    def on_ack(self, ack: Ack, /) -> object:
        """An acknowledgment of at least one new packet. Losses that it reveals come before it."""

    def on_loss(self, loss: Loss, /) -> object:
        """Packets have been declared lost."""


#: Creates the controller of a connection: a class, for example.
CongestionControl = Callable[[Context], Controller]

__all__ = ["Ack", "CongestionControl", "Context", "Controller", "Deadline", "Loss", "Sent"]
