import json

import numpy as np
import pytest

import weir
from weir import ExportError, ObjectiveError, TuneError
from weir.pictures import tuning_report
from weir.tuning import Condition, Expression, Goal
from weir.tuning.__main__ import main

ROWS = {"share": np.array([0.2, 0.5]), "drops": np.array([0.0, 9.0]), "groups.cubic.share": np.array([1.0, 2.0])}
SPACE = {
    "parameters.ecn_threshold": ["10KB", "20KB", "40KB", "60KB", "80KB", "100KB"],
    "parameters.red_min": ["50KB", "100KB", "150KB"],
    "parameters.red_max": ["50KB", "100KB", "150KB"],
}
QUICK = {"duration": "60ms", "warm_up": "20ms", "parameters.buffer": "200KB"}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("abs(share - 0.5) + drops / 9", [0.3, 1.0]),
        ("groups.cubic.share ** 2", [1, 4]),
        ("drops < 1KB and not share > 0.4", [1, 0]),
        ("0 if share < 0.3 else log1p(drops)", [0, np.log(10)]),
        ("max(share, 0.3, 10us)", [0.3, 0.5]),
        ("0.1 < share < 0.3", [1, 0]),
        ("-drops % 4 + 25Gbps / 1Gbps", [25, 28]),
    ],
)
def test_expressions(text, values):
    assert Expression(text)(ROWS) == pytest.approx(values)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "characters"),
        ("share +", "invalid syntax"),
        ("__import__('os').system('true')", "nothing that expressions have"),
        ("open(share)", "nothing that expressions have"),
        ("[share for share in drops]", "nothing that expressions have"),
        ("share.__class__()", "nothing that expressions have"),
        ("lambda: 1", "nothing that expressions have"),
        ("'share'", "nothing that expressions have"),
        ("(" * 500 + "1" + ")" * 500, "500|nest|paren|memory"),
    ],
)
def test_invalid_expressions_are_errors(text, says):
    with pytest.raises(ObjectiveError) as caught:
        Expression(text)
    assert any(word in str(caught.value).lower() for word in says.split("|"))


def test_non_finite_values_are_errors():
    for text in ("1 / drops", "log(drops)", "sqrt(share - 1)", "9 ** 9 ** 9"):
        with pytest.raises(ObjectiveError, match="not a finite number"):
            Expression(text)(ROWS)


def test_built_in_objectives():
    assert Goal.of("target-share=0.4").cost(ROWS, 2) == pytest.approx([0.2, 0.1])
    assert Goal.of("fairness").cost(ROWS, 2)[1] == pytest.approx(0)
    assert Goal.of("fairness=0.25").cost(ROWS, 2)[0] == pytest.approx(0)
    for wrong in ("target-share=2", "fairness=0", "drops=3", "target-share=x"):
        with pytest.raises(ObjectiveError):
            Goal.of(wrong)


def test_a_search_verifies_its_proposals(scenario, tmp_path):
    conditions = [
        Condition({"line_rate": "1Gbps", "cubic_rtt": "1ms"}, weight=2),
        Condition({"line_rate": "500Mbps", "cubic_rtt": "2ms"}),
    ]
    out = tmp_path / "out"
    result = weir.tune(
        conditions, "queue_mean / 1KB", ["utilization > 0.5"], scenario=scenario, space=SPACE, settings=QUICK,
        budget=32, out=out, model="boosting",
    )
    assert result.simulations == 2 * len(result.tried) <= 64
    assert [tried.default for tried in result.defaults] == ["K = 20 packets, drop-tail", "K = 65 packets, drop-tail"]
    assert result.best.kept and result.best.cost == min(tried.cost for tried in result.tried if tried.kept)
    assert any(tried.expected for tried in result.tried)
    # A simulation of the best setting gives the reported values.
    run = weir.run(scenario, {**QUICK, **conditions[1].settings, **result.best.settings})
    assert result.best.values[1]["queue_mean"] == run.summary["ports"]["bottleneck"]["queue_mean_bytes"]
    front = result.pareto()
    assert result.best in front
    assert result.frame.height == 2 * len(result.tried)
    assert "predicted" in result.to_text()
    json.dumps(result.to_dict())
    profile = result.profile("dc")
    assert profile.buffer == 200_000 and profile.red_min <= profile.red_max
    assert "<svg" in tuning_report(result)
    # Repeating the search needs no new simulations.
    again = weir.tune(
        conditions, "queue_mean / 1KB", ["utilization > 0.5"], scenario=scenario, space=SPACE, settings=QUICK,
        budget=32, out=out, model="boosting",
    )
    assert again.best.settings == result.best.settings


def test_the_command_line_exports(scenario, tmp_path, capsys):
    arguments = [
        "--scenario", str(scenario), "--condition", "line_rate=1Gbps,cubic_rtt=1ms", "--objective", "drops",
        "--constraint", "queue_mean < 180KB", "--set", "duration=40ms", "--budget", "26",
        "--model", "paper-shallow", "--out", str(tmp_path / "out"), "--report", str(tmp_path / "report.html"),
        *[word for key, values in SPACE.items() for word in ("--space", f"{key}={','.join(values)}")],
    ]
    assert main([*arguments, "--export", "sonic", "--queue", "Ethernet0|3", "--set", "warm_up=10ms"]) == 0
    said = capsys.readouterr()
    config = json.loads(said.out)
    assert config["QUEUE"]["Ethernet0|3"]["wred_profile"] in config["WRED_PROFILE"]
    assert "K = 65 packets" in said.err
    assert "<svg" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "kind", "says"),
    [
        ({"conditions": []}, TuneError, "no conditions"),
        ({"objective": "shares"}, weir.WeirError, "no output `shares`"),
        ({"objective": "ecn_threshold_bytes"}, TuneError, "no output in it"),
        ({"objective": "1 / (drops - drops)"}, ObjectiveError, "finite"),
        ({"budget": 5}, TuneError, "too small"),
        ({"space": {"parameters.ecn_threshold": []}}, TuneError, "empty"),
        ({"space": {"parameters.ecn": ["1KB", "2KB"]}}, weir.SweepError, "parameters.ecn"),
        ({"space": {"parameters.red_max": ["1 KB or so", "2KB"]}}, TuneError, "no size"),
        ({"constraints": ["queue_mean < 1"]}, TuneError, "loosen"),
        ({"scenario": "nothing"}, weir.ScenarioError, "these scenarios ship"),
    ],
)
def test_invalid_searches_are_errors(scenario, arguments, kind, says):
    base = {
        "conditions": [{"line_rate": "1Gbps"}],
        "objective": "drops",
        "scenario": scenario,
        "space": SPACE,
        "settings": {"duration": "40ms"},
        "budget": 26,
        "model": "paper-shallow",
    }
    with pytest.raises(kind) as caught:
        result = weir.tune(**(base | arguments))
        result.best
    assert says in str(caught.value)


def test_invalid_command_line_arguments_are_errors(capsys):
    assert main(["--condition", "fast"]) == 1
    assert "line_rate=25Gbps" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([])


def test_a_profile_takes_all_thresholds(scenario):
    result = weir.tune(
        [{"line_rate": "1Gbps"}], "drops", scenario=scenario, budget=24, settings={"duration": "30ms"},
        space={"parameters.ecn_threshold": [f"{size}KB" for size in range(10, 60, 2)]}, model="paper-shallow",
    )
    with pytest.raises(ExportError, match="red_min"):
        result.profile()
