"""Weir in Python: simulate buffer sharing in a switch, learn from thousands of runs, tune thresholds.

    import weir

    run = weir.run("buffer-sharing", {"duration": "5s"}, seed=2)
    run.summary["groups"]["cubic"]["share"]
    run.samples                                  # a polars data frame

    runs = weir.sweep("sweeps/table1.toml", out="study")

`weir.surrogate` learns from such runs, `weir.tune` searches thresholds, `weir.export` writes them for
switches, `weir.pictures` draws. See docs/python.md and docs/tuning.md.
"""

from typing import TYPE_CHECKING, Any

from weir._weir import CODE_VERSION, Table
from weir._weir import VERSION as __version__
from weir.errors import (
    DatasetError,
    ExportError,
    ObjectiveError,
    ScenarioError,
    SimulationError,
    SurrogateError,
    SweepError,
    TuneError,
    WeirError,
)
from weir.running import Run, run, scenarios
from weir.sweeping import Points, Runs, sweep

if TYPE_CHECKING:
    from weir.tuning import tune

__all__ = [
    "CODE_VERSION",
    "DatasetError",
    "ExportError",
    "ObjectiveError",
    "Points",
    "Run",
    "Runs",
    "ScenarioError",
    "SimulationError",
    "SurrogateError",
    "SweepError",
    "Table",
    "TuneError",
    "WeirError",
    "__version__",
    "run",
    "scenarios",
    "sweep",
    "tune",
]


def __getattr__(name: str) -> Any:
    # The tuner imports scikit-learn, which is optional.
    if name == "tune":
        from weir.tuning import tune

        return tune
    raise AttributeError(f"module `weir` has no attribute `{name}`")
