"""A congestion control in Python: additive increase, multiplicative decrease. `python examples/aimd.py`"""

import math

import weir


class Aimd:
    """Does what the built-in `newreno` does, except for losses that turn out spurious, and pauses."""

    def __init__(self, context):
        self.threshold, self.credit, self.reduced_ns = math.inf, 0, -1
        self.on_packet_size(context.packet_bytes)

    def on_packet_size(self, size_bytes):  # Before the first data: TCP's options take a part of each segment.
        self.packet, self.window_bytes = size_bytes, 10 * size_bytes

    def on_ack(self, ack):
        if ack.newest_sent_ns <= self.reduced_ns or ack.app_limited:
            return  # Sent before the last reduction, or not limited by the window.
        step = min(ack.acked_bytes, max(self.threshold - self.window_bytes, 0))  # Slow start.
        self.window_bytes += step
        self.credit += ack.acked_bytes - step
        windows = self.credit // self.window_bytes
        self.credit -= windows * self.window_bytes
        self.window_bytes += windows * self.packet  # One packet more for each window.

    def on_loss(self, loss):
        timeout, is_new = loss.cause == "timeout", loss.newest_sent_ns > self.reduced_ns
        if is_new:  # One reduction for each round trip.
            half = max(self.window_bytes // 2, 2 * self.packet)
            self.threshold = min(half, self.threshold) if timeout else half
        if timeout or is_new:
            self.window_bytes = min(2 * self.packet if timeout else half, self.window_bytes)
            self.credit, self.reduced_ns = 0, loss.now_ns


if __name__ == "__main__":
    run = weir.run("convergence", {"parameters.congestion": "mine"}, congestion={"mine": Aimd})
    print(run.flows.select("group", "delivered_bytes", "retransmits"))
