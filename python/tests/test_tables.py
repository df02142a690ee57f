"""Scenarios and settings as dicts and dataclasses, and what notebooks show."""

import tomllib
from dataclasses import dataclass, field

import pytest
from conftest import SCENARIO

import weir
from weir.notebook import plot

TABLES = tomllib.loads(SCENARIO)


@dataclass
class Flow:
    title: str = "One \"flow\""
    source: str = "a test"
    duration: str = "5ms"
    dumbbell: dict = field(
        default_factory=lambda: {
            "rate": "1Gbps",
            "queue": {"kind": "drop-tail", "buffer": "100KB"},
            "senders": {"sender": {"rtt": "100us"}},
        }
    )
    groups: dict = field(default_factory=lambda: {"one": {"from": "sender", "to": "receiver", "workload": "bulk"}})


def test_a_dict_is_a_scenario(scenario):
    assert weir.run(TABLES).flows.equals(weir.run(scenario).flows)
    with pytest.raises(weir.ScenarioError, match=r"dumbbell\.rat"):
        weir.run({**TABLES, "dumbbell": {**TABLES["dumbbell"], "rat": 1}})


def test_a_dataclass_is_a_scenario():
    run = weir.run(Flow(), {"groups.one.congestion": {"name": "dctcp", "g": 0.125}})
    assert run.summary["title"] == 'One "flow"'
    assert run.flows["delivered_bytes"][0] > 0


def test_settings_can_be_tables(scenario):
    by_path = {"parameters.line_rate": "2Gbps", "warm_up": "20ms", "groups.cubic.congestion": "newreno"}
    tables = {"parameters": {"line_rate": "2Gbps"}, "warm_up": "20ms", "groups": {"cubic": {"congestion": "newreno"}}}
    first, second = (weir.run(scenario, settings) for settings in (by_path, tables))
    assert first.flows.equals(second.flows)
    assert first.summary["settings"] == second.summary["settings"]

    @dataclass
    class Parameters:
        line_rate: str
        red_max: str | None = None

    @dataclass
    class Settings:
        parameters: Parameters

    run = weir.run(scenario, Settings(Parameters("2Gbps")))
    assert run.summary["settings"] == {"parameters.line_rate": "2Gbps"}


def test_a_dict_can_be_swept(tmp_path):
    points = [{"parameters.ecn_threshold": size} for size in ("10KB", "90KB")]
    runs = weir.sweep(weir.Points(TABLES, points), tmp_path / "out", progress=False)
    assert runs.frame["ecn_threshold_bytes"].to_list() == [10_000, 90_000]
    page = runs._repr_html_()
    assert "2 runs" in page and "ecn_threshold_bytes" in page
    assert runs.pandas()["groups.cubic.share"].tolist() == runs.frame["groups.cubic.share"].to_list()


def test_a_run_shows_its_groups_ports_and_plots(scenario):
    run = weir.run(scenario)
    page = run._repr_html_()
    assert page.count("<table>") == 2 and page.count("<svg") == 2
    for part in ("DCTCP and CUBIC share a small buffer", "bottleneck", "dctcp", "bit/s", "polyline"):
        assert part in page
    strange = weir.run(scenario, {"title": "<script>"})
    assert "<script>" not in strange._repr_html_()
    assert plot("nothing", []) == "" and "NaN" not in plot("one", [("a", [0.0], [0.0])])


def test_tables_as_pandas(scenario):
    run = weir.run(scenario)
    flows = run.pandas()
    assert flows["delivered_bytes"].tolist() == run.flows["delivered_bytes"].to_list()
    assert flows["group"].tolist() == run.flows["group"].to_list()
    assert len(run.pandas("samples")) == run.samples.height


def test_the_version_is_that_of_the_package():
    assert weir.__version__.count(".") == 2
