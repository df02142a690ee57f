import os
import signal
import threading
import time

import polars as pl
import pyarrow as pa
import pytest

import weir


def test_a_run_gives_summary_and_tables(scenario):
    run = weir.run(scenario)
    share = run.summary["groups"]["cubic"]["share"]
    assert 0 < share < 1
    assert run.summary["seed"] == 1
    assert run.flows.height == 4
    assert set(run.flows["group"]) == {"dctcp", "cubic"}
    queue = run.samples.filter(pl.col("port") == "bottleneck")["queue_bytes"]
    assert queue.dtype == pl.Int64 and queue.max() > 0
    assert run.epochs.height == 0 and "epoch" in run.epochs.columns
    assert run.variants == {}


def test_only_the_same_seed_gives_the_same_results(scenario):
    settings = {"groups.cubic.start_within": "5ms"}
    first, again, other = (weir.run(scenario, settings, seed=seed).flows for seed in (1, 1, 2))
    assert first.equals(again)
    assert not first.equals(other)


def test_settings_and_variants(scenario):
    run = weir.run(scenario, {"parameters.ecn_threshold": "60KB", "warm_up": "20ms"}, variants=True)
    assert run.summary["settings"]["parameters.ecn_threshold"] == "60KB"
    assert run.summary["warm_up_s"] == 0.02
    fast = run.variants["fast"].summary["groups"]["dctcp"]["goodput_bps"]
    assert fast > 10**9
    assert run.variants["fast"].flows.height == 4


def test_tables_share_their_memory(scenario):
    table = weir.run(scenario).tables["flows"]
    assert len(table) == 4
    first, again = pa.table(table), pa.table(table)
    address = first["delivered_bytes"].chunk(0).buffers()[1].address
    assert again["delivered_bytes"].chunk(0).buffers()[1].address == address
    assert first.column_names == table.columns


def test_shipped_scenarios_have_names():
    assert "buffer-sharing" in weir.scenarios()
    early = {f"groups.{group}.start_within": "1ms" for group in ("dctcp", "cubic")}
    run = weir.run("buffer-sharing", {"duration": "2ms", "parameters.line_rate": "5Gbps", **early})
    assert run.summary["title"] == "DCTCP and CUBIC share a switch buffer"


@pytest.mark.parametrize(
    ("name", "settings", "kind", "says"),
    [
        ("nothing", {}, weir.ScenarioError, "these scenarios ship: buffer-sharing"),
        ("small", {"dumbbell.rat": "1Gbps"}, weir.ScenarioError, "dumbbell.rat"),
        ("small", {"parameters.line_rate": object()}, weir.ScenarioError, "write for example"),
        ("small", {"parameters.line_rate": [1]}, weir.ScenarioError, "line_rate"),
        ("small", 5, weir.ScenarioError, "settings are a dict or a dataclass"),
        (5, {}, weir.ScenarioError, "a scenario is a file"),
        ("small", {"duration": "400000000000s"}, weir.WeirError, "duration"),
    ],
)
def test_mistakes_are_reported_like_on_the_command_line(scenario, name, settings, kind, says):
    path = scenario if name == "small" else name
    with pytest.raises(kind) as caught:
        weir.run(path, settings)
    assert says in str(caught.value)
    assert isinstance(caught.value, weir.WeirError)


def test_other_threads_continue_and_ctrl_c_ends_a_run(scenario):
    ticks = 0
    over = threading.Event()

    def tick():
        nonlocal ticks
        while not over.is_set():
            ticks += 1
            time.sleep(0.001)
            if ticks == 100:
                os.kill(os.getpid(), signal.SIGINT)

    # The parent process may ignore Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    thread = threading.Thread(target=tick)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            weir.run(scenario, {"duration": "3600s", "measurements.sample_interval": "1s"})
    finally:
        over.set()
        thread.join()
        signal.signal(signal.SIGINT, before)
    assert ticks >= 100
