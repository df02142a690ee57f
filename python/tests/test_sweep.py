import polars as pl
import pytest

import weir
from weir import _weir

TIMES = ["cpu_s"]


def test_a_sweep_gives_a_row_for_each_run(sweep, tmp_path):
    seen = []
    runs = weir.sweep(sweep, tmp_path / "out", progress=lambda over, total: seen.append((over, total)))
    assert runs.frame.height == 9
    assert seen[-1] == (9, 9)
    assert runs.keys["ecn_threshold_bytes"] == "parameters.ecn_threshold"
    assert runs.frame["groups.cubic.share"].is_between(0, 1).all()
    on_disk = pl.read_parquet(runs.path)
    assert on_disk.equals(runs.frame)


def test_a_sweep_can_be_resumed(sweep, tmp_path):
    out = tmp_path / "out"
    some = weir.sweep(sweep, out, some=3)
    assert some.frame.height == 3
    with pytest.raises(weir.SweepError, match="has 3 rows already"):
        weir.sweep(sweep, out)
    whole = weir.sweep(sweep, out, resume=True, jobs=1)
    assert whole.frame.height == 9
    kept = whole.frame.join(some.frame, on="key", how="semi")
    assert kept.select("cpu_s").equals(some.frame.select("cpu_s"))


def test_ctrl_c_keeps_finished_runs(sweep, tmp_path):
    out = tmp_path / "out"

    def once(over, total):
        if over:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        weir.sweep(sweep, out, jobs=1, progress=once, settings={"duration": "1s"})
    whole = weir.sweep(sweep, out, resume=True, settings={"duration": "1s"})
    assert whole.frame.height == 9


def test_points_are_run_individually(scenario, tmp_path):
    points = weir.Points(
        scenario,
        [
            {"parameters.line_rate": "1Gbps", "parameters.ecn_threshold": "20KB"},
            {"parameters.line_rate": "500Mbps", "parameters.ecn_threshold": "20KB"},
        ],
        seeds=(1, 2),
    )
    runs = weir.sweep(points, tmp_path / "out", settings={"duration": "40ms"})
    assert runs.frame["line_rate_bps"].to_list() == [10**9, 10**9, 5 * 10**8, 5 * 10**8]
    assert runs.frame["seed"].to_list() == [1, 2, 1, 2]
    alone = weir.run(scenario, {"duration": "40ms", "parameters.ecn_threshold": "20KB"}, seed=2)
    assert runs.frame["groups.cubic.share"][1] == alone.summary["groups"]["cubic"]["share"]


def test_failed_runs_are_rows(scenario, tmp_path):
    wrong, right = {"parameters.red_min": "150KB"}, {"parameters.red_min": "50KB"}
    runs = weir.sweep(weir.Points(scenario, [wrong, right]), tmp_path / "out")
    assert runs.failed.height == 1
    assert "red_min" in runs.failed["error"][0]
    with pytest.raises(weir.SweepError, match="no run gave a result.*red_min"):
        weir.sweep(weir.Points(scenario, [wrong]), tmp_path / "other")


def test_tasks_give_the_rows_of_the_sweep(sweep, tmp_path):
    here = weir.sweep(sweep, tmp_path / "here").frame.drop(TIMES)
    opened = _weir.Sweep.load(str(sweep), [], None).open(str(tmp_path / "there"), False, None)
    for task in reversed(opened.tasks()):
        opened.add(_weir.carry_out_task(task))
    assert opened.tasks() == []
    there = pl.DataFrame(opened.finish()[1]).drop(TIMES)
    assert there.equals(here)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("parameters.ecn_threshold", "parameters.ecn"), "parameters.ecn"),
        (('"10KB", "30KB", "90KB"', ""), "no values"),
        (("[grid]", "[grids]"), "sweep.toml"),
        (('"50KB", "100KB"', '"500KB"'), "sweep.toml"),
    ],
)
def test_mistakes_in_a_sweep(sweep, tmp_path, change, says):
    sweep.write_text(sweep.read_text().replace(*change, 1))
    with pytest.raises(weir.SweepError) as caught:
        weir.sweep(sweep, tmp_path / "out")
    assert says in str(caught.value)


@pytest.mark.parametrize(
    "arguments",
    [{"engine": "slurm"}, {"jobs": -1}, {"some": 0}, {"address": "auto"}],
)
def test_invalid_arguments_are_errors(sweep, tmp_path, arguments):
    with pytest.raises(weir.SweepError):
        weir.sweep(sweep, tmp_path / "out", **arguments)
    assert not (tmp_path / "out").exists()
