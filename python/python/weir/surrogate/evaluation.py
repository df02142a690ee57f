"""Accuracy of a model: trained on a part of the data, tested on the rest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from weir.errors import SurrogateError
from weir.surrogate.data import Data
from weir.surrogate.model import FEWEST, Surrogate


def evaluate(
    data: Data,
    model: str,
    fraction: float = 0.05,
    *,
    splits: int = 10,
    outputs: Sequence[str] | None = None,
    seed: int = 0,
    intervals: bool = False,
) -> pl.DataFrame:
    """Trains on a random `fraction` of the rows and tests on all others, `splits` times. One row per split
    and output: r², MSE, RMSE, MAE in the output's own unit, and with `intervals` the fraction of values
    within their interval (`coverage`).

    Raises SurrogateError where the fraction leaves too few training rows.
    """
    outputs = data.outputs() if outputs is None else outputs
    train = round(fraction * len(data))
    if not FEWEST <= train < len(data):
        raise SurrogateError(
            f"{fraction:.1%} of {len(data)} rows are {train}: at least {FEWEST} to learn from, and some to judge by"
        )
    parts = []
    for split in range(splits):
        order = np.random.default_rng(seed + split).permutation(len(data))
        scores = _judge(
            data.take(order[:train]), data.take(order[train:]), model, outputs, seed + split, intervals
        )
        parts.append(scores.with_columns(split=pl.lit(split)))
    return pl.concat(parts)


def held_out(
    data: Data,
    model: str,
    unseen: dict[str, float],
    fraction: float = 0.05,
    *,
    splits: int = 10,
    outputs: Sequence[str] | None = None,
    seed: int = 0,
    intervals: bool = False,
) -> pl.DataFrame:
    """As `evaluate`, but no training row has any value of `unseen` (`{"line_rate_bps": 12.5e9}`), and all
    test rows have all of them: conditions outside the training data. There are as many training rows as
    `fraction` of all."""
    outputs = data.outputs() if outputs is None else outputs
    for name, value in unseen.items():
        if name not in data.inputs:
            raise SurrogateError(f"`{name}` is no input; there are {', '.join(data.inputs)}")
        if value not in data.frame[name].to_list():
            raise SurrogateError(f"no row has {name} = {value:g}")
    has_all = pl.all_horizontal([pl.col(name) == value for name, value in unseen.items()])
    has_any = pl.any_horizontal([pl.col(name) == value for name, value in unseen.items()])
    known, judged = data.take(~has_any), data.take(has_all)
    train = round(fraction * len(data))
    if not FEWEST <= train <= len(known):
        raise SurrogateError(f"{train} rows to learn from, and {len(known)} there are: at least {FEWEST} are needed")
    parts = []
    for split in range(splits):
        order = np.random.default_rng(seed + split).permutation(len(known))[:train]
        scores = _judge(known.take(order), judged, model, outputs, seed + split, intervals)
        parts.append(scores.with_columns(split=pl.lit(split)))
    return pl.concat(parts)


def learning_curve(
    data: Data,
    models: Sequence[str],
    fractions: Sequence[float] = (0.01, 0.02, 0.05, 0.1),
    *,
    splits: int = 10,
    outputs: Sequence[str] | None = None,
    seed: int = 0,
) -> pl.DataFrame:
    """`evaluate` for several models and fractions; fractions with too few training rows are left out."""
    parts = []
    for fraction in fractions:
        if round(fraction * len(data)) < FEWEST:
            continue
        for model in models:
            scores = evaluate(data, model, fraction, splits=splits, outputs=outputs, seed=seed)
            parts.append(scores.with_columns(fraction=pl.lit(fraction)))
    if not parts:
        raise SurrogateError(f"{len(data)} rows are too few for a learning curve with these fractions")
    return pl.concat(parts)


def summarize(scores: pl.DataFrame) -> pl.DataFrame:
    """Mean and standard deviation over the splits, for each model and output, and for the mean r² of all
    outputs (as in the paper's Table 2), called `all`."""
    keys = [key for key in ("model", "fraction", "rows") if key in scores.columns]
    mean = (
        scores.group_by([*keys, "split"], maintain_order=True)
        .agg(pl.col("r2").mean())
        .with_columns(output=pl.lit("all"))
    )
    everything = pl.concat([scores, mean], how="diagonal")
    measures = [name for name in ("r2", "mse", "rmse", "mae", "coverage") if name in everything.columns]
    return everything.group_by([*keys, "output"], maintain_order=True).agg(
        [pl.col(name).mean() for name in measures]
        + [pl.col(name).std().alias(f"{name}_std") for name in measures]
        + [pl.len().alias("splits")]
    )


def _judge(
    train: Data, test: Data, model: str, outputs: Sequence[str], seed: int, intervals: bool
) -> pl.DataFrame:
    surrogate = Surrogate.fit(train, outputs, model, seed=seed, intervals=intervals)
    predicted = surrogate.predict(pl.DataFrame(test.x()), intervals=intervals)
    rows = []
    for output in outputs:
        true, guess = test.y(output), predicted[output].to_numpy()
        error = guess - true
        spread = float(((true - true.mean()) ** 2).mean())
        mse = float((error**2).mean())
        row = {
            "model": model,
            "rows": len(train),
            "output": output,
            "r2": 1 - mse / spread if spread > 0 else float("nan"),
            "mse": mse,
            "rmse": mse**0.5,
            "mae": float(np.abs(error).mean()),
        }
        if intervals:
            low, high = (predicted[f"{output}_{edge}"].to_numpy() for edge in ("low", "high"))
            row["coverage"] = float(((true >= low) & (true <= high)).mean())
        rows.append(row)
    return pl.DataFrame(rows)
