"""A scenario under thousands of settings."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import polars as pl

from weir import _weir
from weir.errors import SweepError
from weir.settings import Settings, as_pairs

Progress = Callable[[int, int], object]


@dataclass(frozen=True)
class Points:
    """Single combinations of settings, instead of a sweep's file: all set the same keys."""

    #: A scenario's file, or the name of one that ships.
    scenario: str | os.PathLike[str]
    #: What to try: `[{"parameters.ecn_threshold": "65KB"}, …]`.
    points: Sequence[Settings]
    #: Each combination is run with each of these.
    seeds: Sequence[int] = (1,)


@dataclass(frozen=True)
class Runs:
    """What a sweep gave: a row for each run, as docs/sweeps.md has it."""

    #: `runs.parquet`.
    path: Path
    #: The same as an Arrow table.
    table: _weir.Table
    #: The paths of the keys that the sweep went through, by column.
    keys: dict[str, str]

    @cached_property
    def frame(self) -> pl.DataFrame:
        """All rows, those of failed runs too, which have an `error`."""
        return pl.DataFrame(self.table)

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
    """Runs a sweep, a file or `Points`, and writes `runs.jsonl` and `runs.parquet` into the directory `out`.

    `engine="local"` uses this machine, `jobs` runs at a time (0: one for each core); `engine="ray"` a Ray
    cluster, the one that `ray.init` was called for, or else `address="auto"`, or a new one on this machine;
    further arguments go to `ray.init`. The rows are the same with either.

    `resume` goes on with the rows that are there; `some` carries out about so many runs, spread evenly;
    `early_stop` lets runs end when they are steady, always or never, whatever the file says. `progress` is
    called with how many runs are over and how many there are; True prints them where there is a terminal.

    Raises SweepError, also where no run gave a result; KeyboardInterrupt on Ctrl-C, when what is over has its rows, and `resume` goes on.
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
        tell_stale=True,
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
    tell_stale: bool = False,
    **ray: Any,
) -> Runs:
    """As `sweep`, without words, and without judging what the runs gave."""
    if engine not in ("local", "ray"):
        raise SweepError(f"there is no engine `{engine}`: write local or ray")
    if engine == "local" and ray:
        raise SweepError(f"the engine `local` takes no {', '.join(ray)}")
    if jobs < 0 or (some is not None and some < 1):
        raise SweepError("`jobs` is at least 0, and `some` at least 1")
    planned = _planned(sweep, settings or {}, early_stop)
    opened = planned.open(os.fspath(out), resume, some)
    if opened.stale and tell_stale:
        print(
            f"{opened.stale} rows in {os.fspath(out)} are of other settings or another version of weir, and "
            "are left alone",
            file=sys.stderr,
        )
    if engine == "ray":
        from weir.cluster import hand_out

        hand_out(opened, jobs, progress, ray)
    else:
        opened.carry_out(jobs, progress)
    path, table = opened.finish()
    return Runs(Path(path), table, {column: key for key, column in planned.keys})


def _planned(
    sweep: str | os.PathLike[str] | Points, settings: Settings, early_stop: bool | None
) -> _weir.Sweep:
    pairs = as_pairs(settings)
    if not isinstance(sweep, Points):
        return _weir.Sweep.load(os.fspath(sweep), pairs, early_stop)
    points = [as_pairs(point) for point in sweep.points]
    scenario = os.fspath(sweep.scenario)
    return _weir.Sweep.of_points(scenario, points, list(sweep.seeds), pairs, early_stop)


class _Bar:
    """Tells a terminal how far a sweep is."""

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
