"""The surrogate, the tuner and the page for sweeps over other keys than thresholds: an incast and a leaf-spine."""

import pytest

import weir
from weir.pictures import sweep_report
from weir.surrogate import Surrogate, dataset, evaluate

INCAST = {"duration": "20ms", "warm_up": "0s"}
LEAF_SPINE = {"duration": "6ms", "warm_up": "1ms", "measurements.sample_interval": "1ms"}


@pytest.fixture(scope="module")
def incast(tmp_path_factory):
    sizes = ("10KB", "20KB", "30KB", "50KB")
    points = [
        {"parameters.servers": servers, "parameters.response": size, "parameters.congestion": control}
        for servers in (5, 10, 20)
        for size in sizes
        for control in ("dctcp", "newreno")
    ]
    out = tmp_path_factory.mktemp("incast") / "out"
    return weir.sweep(weir.Points("incast", points), out, settings=INCAST, progress=False)


@pytest.fixture(scope="module")
def leaf_spine(tmp_path_factory):
    points = [
        {"parameters.load": load, "parameters.congestion": control}
        for load in (0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
        for control in ("dctcp", "swift")
    ]
    out = tmp_path_factory.mktemp("leaf-spine") / "out"
    return weir.sweep(weir.Points("leaf-spine-web-search", points, (1, 2)), out, settings=LEAF_SPINE, progress=False)


def test_inputs_and_outputs_of_an_incast(incast):
    data = dataset(incast)
    assert data.inputs == ("servers", "response_bytes", "congestion=dctcp")
    assert "groups.incast.goodput_bps" in data.outputs() or "groups.incast.completion.p99_s" in data.outputs()
    surrogate = Surrogate.fit(data)
    setting = {"servers": 10, "response_bytes": 20_000, "congestion": "dctcp"}
    predicted, other = (surrogate.predict({**setting, "congestion": name}) for name in ("dctcp", "newreno"))
    assert predicted.columns == list(data.outputs())
    assert not predicted.equals(other)
    scores = evaluate(data, "paper-shallow", 0.85, splits=1)
    assert scores["output"].unique().len() >= len(data.outputs())


def test_inputs_and_outputs_of_a_leaf_spine(leaf_spine):
    data = dataset(leaf_spine)
    assert data.inputs == ("load", "congestion=dctcp")
    assert data.outputs()[0] == "groups.web.slowdown.p99"
    assert "queue_mean" in data.outputs()


def test_the_page_shows_any_sweep(incast, leaf_spine):
    for runs, words in ((incast, "response_bytes"), (leaf_spine, "slowdown.p99")):
        page = sweep_report(dataset(runs), models=["paper-shallow"], splits=2)
        assert page.count("<svg") >= 2 and words in page
        assert "RED against drop-tail" not in page


def test_any_key_can_be_tuned():
    result = weir.tune(
        [{"parameters.servers": 20}],
        "queue_max",
        ["groups.incast.goodput_bps > 100Mbps"],
        scenario="incast",
        space={
            "parameters.congestion": ["dctcp", "newreno"],
            "parameters.response": [f"{size}KB" for size in range(4, 60, 4)],
        },
        settings=INCAST,
        budget=24,
    )
    best = min((tried for tried in result.tried if tried.kept), key=lambda tried: tried.cost)
    assert best.settings["parameters.congestion"] in ("dctcp", "newreno")
    assert best.cost == min(tried.cost for tried in result.tried if tried.kept)
    assert result.simulations <= 24
