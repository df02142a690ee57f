"""Sweeps: a scenario with thousands of settings."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from weir import _weir
from weir.errors import SweepError
from weir.running import to_pandas
from weir.settings import Scenario, Settings, as_pairs, as_source

if TYPE_CHECKING:
    import pandas

Progress = Callable[[int, int], object]


@dataclass(frozen=True)
class Points:
    """Single combinations of settings, instead of a sweep file: all set the same keys."""

    #: A scenario file, the name of a shipped one, or its content as a dict or a dataclass.
    scenario: Scenario
    #: The combinations: `[{"parameters.ecn_threshold": "65KB"}, …]`.
    points: Sequence[Settings]
    #: Each combination is run with each of these seeds.
    seeds: Sequence[int] = (1,)


@dataclass(frozen=True)
class Runs:
    """The result of a sweep: one row per run, as in docs/sweeps.md."""

    #: `runs.parquet`.
    path: Path
    #: Its content as an Arrow table.
    table: _weir.Table
    #: The paths of the swept keys, by column.
    keys: dict[str, str]

    @cached_property
    def frame(self) -> pl.DataFrame:
        """All rows, including those of failed runs, which have an `error`."""
        return pl.DataFrame(self.table)

    def pandas(self) -> pandas.DataFrame:
        """Returns all rows as a pandas data frame. Raises WeirError without pandas."""
        return to_pandas(self.frame)

    def _repr_html_(self) -> str:
        from weir.notebook import runs_page

        return runs_page(self)

    @cached_property
    def failed(self) -> pl.DataFrame:
        """The rows of runs that failed."""
        if "error" not in self.frame.columns:
            return self.frame.clear().with_columns(error=pl.lit(None, pl.String))
        return self.frame.filter(pl.col("error").is_not_null())


def sweep(
    sweep: str | os.PathLike[str] | Points,
    out: str | os.PathLike[str],
    *,
    engine: Literal["local", "ray"] = "local",
    settings: Settings | None = None,
    resume: bool = False,
    some: int | None = None,
    jobs: int = 0,
    early_stop: bool | None = None,
    progress: Progress | bool = True,
    **ray: Any,
) -> Runs:
    """Runs a sweep, a file or `Points`, and writes `runs.jsonl` and `runs.parquet` into the directory
    `out`.

    `engine="local"` uses this machine, `jobs` runs at a time (0: one per core). `engine="ray"` uses a Ray
    cluster: the one of an earlier `ray.init`, or else `address="auto"`, or a new one on this machine;
    further arguments go to `ray.init`. The rows are the same with either.

    `resume` continues with the existing rows, and says which it keeps. `some` runs about that many runs, spread
    evenly. `early_stop` ends runs at steady state, always or never, overriding the file. `progress` is called with
    the number of completed runs and the total; True prints them on a terminal.

    Raises SweepError, also where no run gave a result. On Ctrl-C it raises KeyboardInterrupt after the rows
    of completed runs are written; `resume` continues.
    """
    told = _Bar() if progress is True else progress or None
    runs = carry_out(
        sweep,
        out,
        engine=engine,
        settings=settings,
        resume=resume,
        some=some,
        jobs=jobs,
        early_stop=early_stop,
        progress=told,
        tell_reuse=True,
        **ray,
    )
    if runs.frame.height and runs.failed.height == runs.frame.height:
        raise SweepError(f"no run gave a result: {runs.failed['error'][0]}")
    return runs


def carry_out(
    sweep: str | os.PathLike[str] | Points,
    out: str | os.PathLike[str],
    *,
    engine: str = "local",
    settings: Settings | None = None,
    resume: bool = False,
    some: int | None = None,
    jobs: int = 0,
    early_stop: bool | None = None,
    progress: Progress | None = None,
    tell_reuse: bool = False,
    **ray: Any,
) -> Runs:
    """As `sweep`, without output, and without checking the results."""
    if engine not in ("local", "ray"):
        raise SweepError(f"there is no engine `{engine}`: write local or ray")
    if engine == "local" and ray:
        raise SweepError(f"the engine `local` takes no {', '.join(ray)}")
    if jobs < 0 or (some is not None and some < 1):
        raise SweepError("`jobs` is at least 0, and `some` at least 1")
    planned = _planned(sweep, settings, early_stop)
    opened = planned.open(os.fspath(out), resume, some)
    if tell_reuse:
        for line in opened.reuse:
            print(line, file=sys.stderr)
    if engine == "ray":
        from weir.cluster import hand_out

        hand_out(opened, jobs, progress, ray)
    else:
        opened.carry_out(jobs, progress)
    path, table = opened.finish()
    return Runs(Path(path), table, {column: key for key, column in planned.keys})


def _planned(
    sweep: str | os.PathLike[str] | Points, settings: Settings | None, early_stop: bool | None
) -> _weir.Sweep:
    pairs = as_pairs(settings)
    if not isinstance(sweep, Points):
        return _weir.Sweep.load(os.fspath(sweep), pairs, early_stop)
    points = [as_pairs(point) for point in sweep.points]
    return _weir.Sweep.of_points(as_source(sweep.scenario), points, list(sweep.seeds), pairs, early_stop)


class _Bar:
    """Prints a sweep's progress on a terminal."""

    def __init__(self) -> None:
        self.begin = time.monotonic()
        self.first: int | None = None

    def __call__(self, over: int, total: int) -> None:
        if not sys.stderr.isatty():
            return
        if self.first is None:
            self.first = over
        spent = time.monotonic() - self.begin
        done = over - self.first
        left = f", {spent * (total - over) / done:.0f} s left" if done else ""
        end = "\n" if over == total else ""
        print(f"\r{over} of {total} runs{left}\x1b[K", end=end, file=sys.stderr, flush=True)
