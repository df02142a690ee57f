"""Datasets of sweeps as inputs and outputs for models."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from weir import _weir
from weir.errors import DatasetError
from weir.surrogate.outputs import DEFAULT, column, default_outputs
from weir.sweeping import Runs

#: Columns without inputs and outputs, in every dataset of a sweep.
BOOKS = ("run", "key", "code", "seed", "error", "stopped_at_s", "cpu_s")
#: Prefixes of output columns.
OUTPUTS = ("groups.", "ports.", "loads.", "reduction")


@dataclass(frozen=True)
class Data:
    """Rows of successful runs, and which columns are inputs."""

    frame: pl.DataFrame
    #: The inputs that vary between rows: numbers, and `COLUMN=TEXT`, 1 or 0, for texts.
    inputs: tuple[str, ...]
    #: The inputs that are the same in all rows.
    constants: dict[str, float]
    #: The parts of weir's code that produced the rows, each with its digest.
    code: str

    def __len__(self) -> int:
        return self.frame.height

    def x(self) -> dict[str, np.ndarray]:
        """Returns the inputs by column."""
        return {name: self.frame[name].to_numpy().astype(float) for name in self.inputs}

    def y(self, output: str) -> np.ndarray:
        """Returns an output: one of `weir.surrogate.outputs.NAMED`, or any column."""
        return column(self.frame, output, self.constants)

    def outputs(self) -> tuple[str, ...]:
        """Returns the outputs that are learned if none are named."""
        return default_outputs(self.frame)

    def take(self, rows: Sequence[int] | np.ndarray | pl.Expr) -> Data:
        """Selects rows, by number or by condition; inputs stay inputs."""
        if isinstance(rows, pl.Expr):
            frame = self.frame.filter(rows)
        else:
            frame = self.frame[np.asarray(rows)]
        return Data(frame, self.inputs, self.constants, self.code)

    def with_rows(self, more: pl.DataFrame) -> Data:
        """Adds rows with the same inputs and version."""
        more = _usable(more)
        words = [name for name in self.inputs if name not in more.columns and name.partition("=")[0] in more.columns]
        more = more.with_columns([indicator(more, name) for name in words])
        frame = pl.concat([self.frame, more], how="diagonal_relaxed")
        return Data(frame, self.inputs, self.constants, self.code)


def dataset(
    source: str | os.PathLike[str] | pl.DataFrame | Runs, *, any_version: bool = False
) -> Data:
    """Reads the dataset of a sweep: `runs.parquet`, or the result of `weir.sweep`.

    Rows of failed runs are left out. Raises DatasetError for data that is no such dataset, and for rows of
    another version of the simulator, unless `any_version` is set.
    """
    name, frame = _read(source)
    absent = [book for book in ("code", "seed") if book not in frame.columns]
    if absent or not any(column.startswith(OUTPUTS) for column in frame.columns):
        raise DatasetError(
            f"{name}: this is no dataset of a sweep; weir sweep writes one, runs.parquet, into its directory"
        )
    code = _one_version(name, frame["code"].unique().drop_nulls().to_list())
    differing = _weir.differing_code(code)
    if differing and not any_version:
        raise DatasetError(
            f"{name}: made by another version of weir's code, which differs in {', '.join(differing)}: "
            "run the sweep again, or say any_version=True (--any-version) if the difference does not matter"
        )
    frame = _usable(frame)
    if frame.is_empty():
        raise DatasetError(f"{name}: no run gave anything")
    axes = [column for column in frame.columns if column not in BOOKS and not column.startswith(OUTPUTS)]
    frame = frame.with_columns(pl.col(name).cast(pl.Int8) for name in axes if frame[name].dtype == pl.Boolean)
    words = [column for column in axes if frame[column].dtype == pl.String and frame[column].n_unique() > 1]
    for column in words:
        values = frame[column].drop_nulls().unique().sort().to_list()
        # The last one is there if none of the others is.
        frame = frame.with_columns([indicator(frame, f"{column}={value}") for value in values[:-1]])
        axes += [f"{column}={value}" for value in values[:-1]]
    names = [column for column in axes if frame[column].dtype.is_numeric()]
    varied = tuple(name for name in names if frame[name].n_unique() > 1)
    constants = {name: float(frame[name][0]) for name in names if name not in varied}
    if not varied:
        raise DatasetError(f"{name}: all runs have the same inputs: a sweep over some key is needed")
    return Data(frame, varied, constants, code)


def indicator(frame: pl.DataFrame, name: str) -> pl.Series:
    """Returns the input `COLUMN=TEXT`: 1 in rows with this text, 0 in others."""
    column, _, text = name.partition("=")
    return (frame[column] == text).fill_null(False).cast(pl.Int8).alias(name)


def _one_version(name: str, codes: Sequence[str]) -> str:
    """Returns the parts of the code that all rows used, each with its digest. Rows of different algorithms have
    different parts; the digests of a part are the same."""
    digests: dict[str, str] = {}
    for part in sorted({part for code in codes for part in code.split()}):
        of, _, digest = part.partition(":")
        if digests.setdefault(of, digest) != digest:
            raise DatasetError(f"{name}: rows of several versions of weir, which differ in {of}: they do not mix")
    return " ".join(f"{of}:{digest}" for of, digest in digests.items())


def _read(source: Any) -> tuple[str, pl.DataFrame]:
    if isinstance(source, Runs):
        return str(source.path), source.frame
    if isinstance(source, pl.DataFrame):
        return "the data frame", source
    name = os.fspath(source)
    if os.path.isdir(name):
        name = os.path.join(name, "runs.parquet")
    try:
        return name, pl.read_parquet(name)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise DatasetError(f"{name}: {error}") from error


def _usable(frame: pl.DataFrame) -> pl.DataFrame:
    if "error" in frame.columns:
        frame = frame.filter(pl.col("error").is_null()).drop("error")
    return frame


__all__ = ["DEFAULT", "Data", "dataset", "indicator"]
