"""Means over seeds with their 95 % confidence intervals, as `weir run --seeds` computes them."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from weir import _weir


def over_seeds(frame: pl.DataFrame, by: Sequence[str], value: str) -> pl.DataFrame:
    """Returns the mean of a column in each group of rows, with half the width of its 95 % confidence interval
    (Student's, null with one seed) and the number of seeds: columns `by`, `mean`, `half_width`, `seeds`.

    Rows of one seed in one group, which differ in other keys, are averaged first: the seeds are what repeats.
    """
    of_seed = frame.filter(pl.col(value).is_not_nan()).group_by([*by, "seed"]).agg(pl.col(value).mean())
    rows = []
    groups = of_seed.group_by(list(by), maintain_order=True) if by else [((), of_seed)]
    for key, part in groups:
        mean, half_width = _weir.mean_interval(part.sort("seed")[value].to_list())
        rows.append((*key, mean, half_width, part.height))
    schema = {name: frame.schema[name] for name in by} | {
        "mean": pl.Float64(),
        "half_width": pl.Float64(),
        "seeds": pl.Int64(),
    }
    found = pl.DataFrame(rows, schema=schema, orient="row")
    return found.sort(list(by)) if by else found
