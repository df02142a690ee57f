import json
import time
import zipfile

import numpy as np
import polars as pl
import pytest
from made_up import made_up

from weir import DatasetError, SurrogateError
from weir.surrogate import MODELS, Surrogate, dataset, evaluate, held_out, learning_curve, summarize


@pytest.fixture(scope="module")
def data():
    return dataset(made_up())


@pytest.fixture(scope="module")
def surrogate(data):
    return Surrogate.fit(data.take(np.arange(0, len(data), 4)))


def test_inputs_are_the_columns_that_vary(data):
    assert set(data.inputs) == {
        "line_rate_bps", "cubic_rtt_s", "ecn_threshold_bytes", "red_min_bytes", "red_max_bytes",
    }
    one = dataset(made_up().filter(pl.col("line_rate_bps") == 5_000_000_000))
    assert one.constants == {"line_rate_bps": 5e9}
    assert data.y("drops").min() > 0
    assert data.y("delay_p99").max() == pytest.approx(1_800_000 * 8 / 5e9)
    assert ((data.y("jain") >= 0.5) & (data.y("jain") <= 1)).all()


@pytest.mark.parametrize("model", [name for name in MODELS if name != "ensemble"])
def test_every_model_learns(data, model):
    scores = evaluate(data, model, 0.3, splits=1, outputs=["share", "queue_mean"])
    assert scores["r2"].min() > 0.6, scores
    for row in scores.iter_rows(named=True):
        assert row["rmse"] == pytest.approx(row["mse"] ** 0.5) and row["mae"] <= row["rmse"]


def test_splits_are_summarized_with_their_spread(data):
    scores = evaluate(data, "paper-shallow", 0.1, splits=3, intervals=True)
    summary = summarize(scores)
    assert set(summary["output"]) == {"share", "drops", "queue_mean", "queue_max", "all"}
    assert (summary["splits"] == 3).all() and (summary["r2_std"] > 0).all()
    # The target is 90 %; 54 calibration rows leave some tolerance.
    coverage = summary.filter(pl.col("output") != "all")["coverage"]
    assert coverage.min() > 0.8 and coverage.max() < 1


def test_held_out_conditions_are_scored(data):
    unseen = {"line_rate_bps": 12.5e9, "cubic_rtt_s": 0.05}
    scores = held_out(data, "gaussian", unseen, 0.1, splits=2, outputs=["share"])
    assert (scores["rows"] == round(0.1 * len(data))).all()
    assert scores["r2"].is_finite().all()
    with pytest.raises(SurrogateError, match="no row has line_rate_bps"):
        held_out(data, "gaussian", {"line_rate_bps": 1e9})


def test_more_rows_improve_the_score(data):
    scores = summarize(learning_curve(data, ["boosting"], [0.1, 0.6], splits=2, outputs=["share"]))
    few, many = scores.filter(pl.col("output") == "share").sort("rows")["r2"]
    assert many > few


def test_a_saved_surrogate_predicts_the_same(surrogate, data, tmp_path):
    path = tmp_path / "thresholds.weir"
    surrogate.save(path)
    again = Surrogate.load(path)
    settings = pl.DataFrame(data.x())
    assert again.predict(settings, intervals=True).equals(surrogate.predict(settings, intervals=True))
    assert (again.model, again.code, again.ranges) == (surrogate.model, surrogate.code, surrogate.ranges)


@pytest.mark.parametrize("model", ["boosting", "network", "trees", "paper-deep", "paper-shallow"])
def test_every_kind_of_model_is_saved(data, tmp_path, model):
    fitted = Surrogate.fit(data.take(np.arange(60)), ["share"], model, intervals=False)
    fitted.save(tmp_path / "saved")
    settings = pl.DataFrame(data.x())
    assert Surrogate.load(tmp_path / "saved").predict(settings).equals(fitted.predict(settings))


def test_invalid_surrogate_files_are_errors(surrogate, tmp_path):
    path = tmp_path / "saved"
    with pytest.raises(SurrogateError, match="saved"):
        Surrogate.load(path)
    path.write_text("no archive")
    with pytest.raises(SurrogateError):
        Surrogate.load(path)
    surrogate.save(path)
    for change, says in [({"version": 99}, "version 99"), ({"model": "pickle"}, "no model"), ({"format": "x"}, "no surrogate")]:
        other = tmp_path / "changed"
        with zipfile.ZipFile(path) as old, zipfile.ZipFile(other, "w") as new:
            manifest = json.loads(old.read("surrogate.json")) | change
            new.writestr("surrogate.json", json.dumps(manifest))
        with pytest.raises(SurrogateError, match=says):
            Surrogate.load(other)


def test_a_hundred_thousand_settings(surrogate):
    """The goal is one second; the assertion is about the result, the time is printed."""
    random = np.random.default_rng(1)
    settings = pl.DataFrame(
        {name: random.uniform(low, high, 100_000) for name, (low, high) in surrogate.ranges.items()}
    )
    begin = time.perf_counter()
    predicted = surrogate.predict(settings)
    print(f"100,000 predictions of {len(surrogate.outputs)} outputs: {time.perf_counter() - begin:.2f} s")
    assert predicted.height == 100_000
    assert predicted["share"].is_between(0, 1).all() and (predicted["drops"] >= 0).all()


def test_the_gaussian_process_is_scikit_learns(surrogate, data):
    from weir.surrogate.features import physical
    from weir.surrogate.model import _predicted

    features = physical(data.x())
    for learned in surrogate.learned.values():
        (pipeline,) = learned.regressors
        assert _predicted(pipeline, features) == pytest.approx(pipeline.predict(features), abs=1e-6)


def test_mistakes(surrogate, data):
    with pytest.raises(SurrogateError, match="too few"):
        Surrogate.fit(data.take(np.arange(10)))
    with pytest.raises(SurrogateError, match="there are paper-shallow"):
        Surrogate.fit(data, model="magic")
    with pytest.raises(DatasetError, match="no output `shares`"):
        Surrogate.fit(data, ["shares"])
    with pytest.raises(SurrogateError, match="settings have no"):
        surrogate.predict({"line_rate_bps": 5e9})
    with pytest.raises(SurrogateError, match="too few|at least"):
        evaluate(data, "gaussian", 0.01)
    setting = {name: low for name, (low, _) in surrogate.ranges.items()}
    assert surrogate.predict(setting).height == 1
    with pytest.raises(SurrogateError, match="finite"):
        surrogate.predict({**setting, "cubic_rtt_s": float("nan")})


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        (made_up(code="simulator:0123456789abcdef"), "differs in simulator"),
        (pl.concat([made_up(), made_up(code="simulator:0")]), "several versions"),
        (pl.DataFrame({"a": [1]}), "no dataset of a sweep"),
        (made_up().with_columns(error=pl.lit("no")), "no run gave anything"),
        (made_up().head(1), "same inputs"),
    ],
)
def test_invalid_datasets_are_errors(frame, says):
    with pytest.raises(DatasetError, match=says):
        dataset(frame)


def test_another_version_can_be_allowed(tmp_path):
    path = tmp_path / "runs.parquet"
    made_up(code="simulator:0").write_parquet(path)
    assert len(dataset(tmp_path, any_version=True)) == len(made_up())
