"""Simulation of a single scenario."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from weir import _weir
from weir.congestion import CongestionControl
from weir.errors import missing
from weir.settings import Scenario, Settings, as_pairs, as_source


if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Run:
    """The result of a run. The tables are those of docs/results.md; they share memory with the simulator's.
    """

    #: The content of `summary.json`.
    summary: dict[str, Any]
    #: Arrow tables of flows, samples and epochs, for any consumer of `__arrow_c_stream__`.
    tables: dict[str, _weir.Table]
    #: The scenario's variants by name, if requested.
    variants: dict[str, Run]

    @cached_property
    def flows(self) -> pl.DataFrame:
        """One row per flow."""
        return pl.DataFrame(self.tables["flows"])

    @cached_property
    def samples(self) -> pl.DataFrame:
        """Ports and groups over time."""
        return pl.DataFrame(self.tables["samples"])

    @cached_property
    def epochs(self) -> pl.DataFrame:
        """One row per request of an epoch, where the scenario has the workload `epochs`."""
        return pl.DataFrame(self.tables["epochs"])

    def pandas(self, table: str = "flows") -> pandas.DataFrame:
        """Returns `flows`, `samples` or `epochs` as a pandas data frame. Raises WeirError without pandas."""
        return to_pandas(pl.DataFrame(self.tables[table]))

    def _repr_html_(self) -> str:
        from weir.notebook import run_page

        return run_page(self)


def run(
    scenario: Scenario,
    settings: Settings | None = None,
    *,
    seed: int | None = None,
    variants: bool = False,
    congestion: Mapping[str, CongestionControl] | None = None,
) -> Run:
    """Simulates a scenario: a file, the name of a shipped one (`weir.scenarios()`), or the content of a file as a dict
    or a dataclass, in which files are relative to the current directory.

    `settings` override values of the scenario, by path, `{"parameters.line_rate": "5Gbps"}`, or as tables in each other,
    also as a dataclass. With `variants`
    the scenario's variants run in parallel on all cores. Other Python threads go on meanwhile; Ctrl-C ends
    the simulation.

    `congestion` has congestion controls in Python, by the names that the scenario calls them: classes, or anything
    else that returns a `Controller` for a `Context`. The simulation then runs on this thread alone.

    Raises ScenarioError for a scenario that cannot be read or has errors, SimulationError for one that
    cannot be simulated, or whose congestion control in Python fails: with its exception as the cause.
    """
    pairs = as_pairs(settings)
    if seed is not None:
        pairs.append(("seed", str(int(seed))))
    text, own, others = _weir.run(as_source(scenario), pairs, variants, list((congestion or {}).items()))
    summary: dict[str, Any] = json.loads(text)
    of_variants: dict[str, Any] = summary.pop("variants")
    return Run(
        summary,
        _by_name(own),
        {name: Run(of_variants[name], _by_name(tables), {}) for name, tables in others},
    )


def to_pandas(frame: pl.DataFrame) -> pandas.DataFrame:
    """Returns a data frame of polars as one of pandas. Raises WeirError without pandas."""
    try:
        import pandas
    except ImportError as error:
        raise missing("a pandas data frame", "pandas", error) from error
    columns = frame.get_columns()
    cells = {
        column.name: column.to_numpy() if column.dtype.is_numeric() else column.to_list() for column in columns
    }
    return pandas.DataFrame(cells)


def scenarios() -> list[str]:
    """The names of the shipped scenarios."""
    return _weir.scenarios()


def _by_name(tables: tuple[_weir.Table, _weir.Table, _weir.Table]) -> dict[str, _weir.Table]:
    return dict(zip(("flows", "samples", "epochs"), tables))
