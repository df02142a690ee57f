import random
import runpy
from pathlib import Path

import pytest

import weir

AIMD = runpy.run_path(str(Path(__file__).parents[1] / "examples" / "aimd.py"))["Aimd"]
MINE = {
    "groups.cubic.congestion": "mine",
    "groups.dctcp.congestion": "mine",
    "groups.dctcp.tcp.ecn": "off",
    "parameters.red_min": "20KB",
    "parameters.red_max": "60KB",
}
ALIKE = {path: value.replace("mine", "newreno") for path, value in MINE.items()}


def test_the_example_sends_what_the_built_in_aimd_sends(scenario):
    own = weir.run(scenario, MINE, congestion={"mine": AIMD})
    built_in = weir.run(scenario, ALIKE)
    assert own.flows["retransmits"].sum() > 50
    assert own.flows.equals(built_in.flows)
    assert own.samples.equals(built_in.samples)


def test_only_the_same_seed_gives_the_same_results(scenario):
    class Dice(AIMD):
        def __init__(self, context):
            super().__init__(context)
            self.random = random.Random(context.seed)

        def on_ack(self, ack):
            if self.random.random() < 0.5:
                super().on_ack(ack)

    def run(seed):
        return weir.run(scenario, MINE, seed=seed, congestion={"mine": Dice}).flows

    assert run(1).equals(run(1))
    assert not run(1).equals(run(2))


def test_all_events_arrive(scenario):
    seen = {}

    class Curious(AIMD):
        wants_delivery = True

        def __init__(self, context):
            super().__init__(context)
            self.rate_bps = None

        def on_ack(self, ack):
            super().on_ack(ack)
            assert ack.now_ns >= ack.newest_sent_ns and (ack.rtt_ns is None or ack.rtt_ns > 0)
            seen["rate"] = max(seen.get("rate", 0), ack.delivery_rate_bps or 0)
            self.rate_bps = 4e8 if ack.now_ns > 20_000_000 else None

        def on_sent(self, sent):
            assert sent.in_flight_bytes >= sent.size_bytes > 0
            seen["sent"] = seen.get("sent", 0) + 1

        def on_loss(self, loss):
            super().on_loss(loss)
            assert loss.cause in ("acks", "timeout") and loss.lost_bytes > 0
            seen["lost"] = True

    run = weir.run(scenario, MINE, congestion={"mine": Curious})
    assert seen["sent"] > 1000 and seen["lost"] and 10**7 < seen["rate"] <= 10**9
    assert run.summary["groups"]["dctcp"]["goodput_bps"] > 10**8


class Broken(AIMD):
    """Acts after the hundredth acknowledgment of a flow."""

    def __init__(self, context):
        super().__init__(context)
        self.acks = 0

    def on_ack(self, ack):
        super().on_ack(ack)
        self.acks += 1
        if self.acks > 100:
            self.act()


def sets(window):
    class Sets(Broken):
        def act(self):
            self.window_bytes = window

    return Sets


class Raises(Broken):
    def act(self):
        return 1 / 0


class Forgets(Broken):
    def act(self):
        del self.window_bytes


class Rate(Broken):
    rate_bps = None

    def act(self):
        self.rate_bps = -1.0


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (Raises, "ZeroDivisionError: division by zero"),
        (Forgets, "no attribute 'window_bytes'"),
        (sets(float("nan")), "`window_bytes` is nan: it must be at least 1"),
        (sets(-5), "`window_bytes` is -5: it must be at least 1"),
        (sets(0), "`window_bytes` is 0"),
        (sets("wide"), "`window_bytes` is 'wide': it must be a number"),
        (sets(10**400), "too large"),
        (Rate, "`rate_bps` is -1.0: it must be at least 1, or None"),
    ],
)
def test_a_failure_names_its_flow_and_time(scenario, broken, says):
    with pytest.raises(weir.SimulationError, match=r"congestion control `mine`, flow \d of `(cubic|dctcp)`, at \d") as caught:
        weir.run(scenario, MINE, congestion={"mine": broken})
    assert says in str(caught.value)
    assert caught.value.__cause__ is not None


@pytest.mark.parametrize(
    ("classes", "kind", "says"),
    [
        ({"mine": object}, weir.SimulationError, "mine"),
        ({"mine": 5}, weir.SimulationError, "not callable"),
        ({"mine": lambda context: None}, weir.SimulationError, "no method `on_ack`"),
        ({"cubic": AIMD}, weir.ScenarioError, "cannot be called `cubic`"),
        ({"other": AIMD}, weir.ScenarioError, "`mine`"),
    ],
)
def test_what_is_no_congestion_control_is_reported(scenario, classes, kind, says):
    with pytest.raises(kind) as caught:
        weir.run(scenario, MINE, congestion=classes)
    assert says in str(caught.value)


def test_other_exceptions_end_a_run_as_they_are(scenario):
    class Interrupts(Broken):
        def act(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        weir.run(scenario, MINE, congestion={"mine": Interrupts})


def test_limits_and_unbounded_windows(scenario):
    class Fixed:
        window_bytes = float("inf")

        def __init__(self, context):
            self.rate_bps = 10**8

        def on_ack(self, ack): ...
        def on_loss(self, loss): ...

    settings = {**MINE, "groups.cubic.congestion": '{ name = "mine", max_rate = "10Mbps" }'}
    run = weir.run(scenario, settings, congestion={"mine": Fixed})
    groups = run.summary["groups"]
    # Two flows each, in bits of data per second.
    assert 1.8e7 < groups["cubic"]["goodput_bps"] < 2.01e7
    assert 1.8e8 < groups["dctcp"]["goodput_bps"] < 2.01e8
