"""Plots of sweeps, surrogates and tunings, and self-contained HTML pages of them.

    weir.pictures.heat_maps(data).savefig("figure2.svg")
    Path("report.html").write_text(weir.pictures.sweep_report(data))

`python -m weir.pictures DIR FILE` writes the page for a sweep's directory, as `weir sweep --report FILE`
does.
"""

from __future__ import annotations

import argparse
import html
import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from weir.errors import DatasetError, WeirError, missing

try:
    from matplotlib.figure import Figure
except ImportError as error:
    raise missing("weir.pictures", "learn", error) from error

from weir.intervals import over_seeds
from weir.surrogate.data import Data, dataset
from weir.surrogate.evaluation import learning_curve, summarize
from weir.surrogate.model import FEWEST, Surrogate

if TYPE_CHECKING:
    from weir.tuning.result import TuneResult

ECN, LOW, HIGH = "ecn_threshold_bytes", "red_min_bytes", "red_max_bytes"
RATE, RTT = "line_rate_bps", "cubic_rtt_s"
KB = 1000.0
TITLES = {
    "share": "CUBIC's share of the goodput",
    "drops": "dropped packets",
    "queue_mean": "mean queue, bytes",
    "queue_max": "longest queue, bytes",
}


def heat_maps(data: Data, output: str = "share", rtt: float | None = None) -> Figure:
    """The paper's Figures 2 (`share`) and 3 (`drops`): an output over the ECN threshold and the drop-tail
    threshold, one map per line rate, which the paper does not state. `rtt` selects CUBIC's RTT in seconds;
    by default the middle one of the data. With several seeds the colours are means, and the title has the widest of
    their 95 % confidence intervals.

    Raises DatasetError where the data has no drop-tail settings.
    """
    _needs(data, ECN, LOW, HIGH)
    data = data.take(pl.col(LOW) == pl.col(HIGH))
    if RTT in data.inputs and len(data):
        rtts = data.frame[RTT].unique().sort().to_list()
        chosen = rtts[len(rtts) // 2] if rtt is None else rtt
        data = data.take(pl.col(RTT) == chosen)
    if not len(data):
        raise DatasetError("no drop-tail settings (red_min = red_max) with that round trip in the data")
    frame = data.frame.with_columns(value=pl.Series(data.y(output)))
    rates = frame[RATE].unique().sort().to_list() if RATE in frame.columns else [None]
    figure = Figure(figsize=(4.6 * len(rates), 4.2), layout="constrained")
    axes = figure.subplots(1, len(rates), squeeze=False)[0]
    least, most = float(frame["value"].min()), float(frame["value"].max())  # type: ignore[arg-type]
    for axis, rate in zip(axes, rates):
        part = frame if rate is None else frame.filter(pl.col(RATE) == rate)
        marks, levels = (part[name].unique().sort().to_numpy() for name in (ECN, HIGH))
        cells = np.full((len(marks), len(levels)), np.nan)
        means = over_seeds(part, (ECN, HIGH), "value")
        for mark, level, value in means.select(ECN, HIGH, "mean").iter_rows():
            cells[np.searchsorted(marks, mark), np.searchsorted(levels, level)] = value
        image = axis.imshow(cells, origin="upper", aspect="auto", cmap="viridis", vmin=least, vmax=most)
        axis.set_xticks(range(len(levels)), [f"{level / KB:.0f}" for level in levels], rotation=60)
        axis.set_yticks(range(len(marks)), [f"{mark / KB:.0f}" for mark in marks])
        axis.set_xlabel("drop-tail threshold, KB")
        title = "" if rate is None else f"{rate / 1e9:g} Gbps"
        axis.set_title(f"{title}\n{_widest(means)}".strip())
    axes[0].set_ylabel("ECN threshold, KB")
    figure.colorbar(image, ax=list(axes), label=TITLES.get(output, output))
    return figure


def red_against_drop_tail(data: Data) -> Figure:
    """Section 6.4: RED settings against the drop-tail setting with the same `red_max` and the same
    conditions: drops and queues, one point per pair."""
    _needs(data, LOW, HIGH)
    names = ("drops", "queue_mean", "queue_max")
    frame = data.frame.with_columns([pl.Series(f"_{name}", data.y(name)) for name in names])
    keys = [name for name in data.inputs if name != LOW] + ["seed"]
    tail = frame.filter(pl.col(LOW) == pl.col(HIGH)).group_by(keys).agg([pl.col(f"_{name}").mean() for name in names])
    red = frame.filter(pl.col(LOW) < pl.col(HIGH))
    pairs = red.join(tail, on=keys, suffix="_tail")
    if pairs.is_empty():
        raise DatasetError("no RED setting in the data has a drop-tail setting with the same red_max beside it")
    figure = Figure(figsize=(12, 4), layout="constrained")
    for axis, name in zip(figure.subplots(1, 3), names):
        across, up = pairs[f"_{name}_tail"].to_numpy(), pairs[f"_{name}"].to_numpy()
        axis.scatter(across, up, s=8, alpha=0.5)
        _diagonal(axis, across, up)
        axis.set_xlabel("drop-tail")
        axis.set_ylabel("RED")
        axis.set_title(f"{TITLES[name]}\nRED less in {(up < across).mean():.0%} of {len(up)} pairs")
    return figure


def over_axes(data: Data, outputs: Sequence[str] | None = None) -> Figure:
    """Each output over the input with the most values, a line for each combination of up to two others with the fewest;
    means over all else, and with several seeds their 95 % confidence intervals."""
    outputs = data.outputs() if outputs is None else outputs
    names = list(dict.fromkeys(name.partition("=")[0] for name in data.inputs))
    values = {name: data.frame[name].n_unique() for name in names}
    numbers = [name for name in names if data.frame[name].dtype.is_numeric()]
    across = max(numbers or names, key=lambda name: values[name])
    others = sorted((name for name in names if name != across), key=lambda name: values[name])[:2]
    frame = data.frame.with_columns([pl.Series(f"_{output}", data.y(output)) for output in outputs])
    figure = Figure(figsize=(4.2 * len(outputs), 3.8), layout="constrained")
    for axis, output in zip(figure.subplots(1, len(outputs), squeeze=False)[0], outputs):
        lines = frame.group_by(others, maintain_order=True) if others else [((), frame)]
        for key, part in lines:
            means = over_seeds(part, (across,), f"_{output}")
            label = ", ".join(f"{name}={_cell(text)}" for name, text in zip(others, key))
            at = means[across].to_list()
            bars = means["half_width"].fill_null(0).to_list()
            axis.errorbar(at, means["mean"].to_list(), bars, marker="o", capsize=3, label=label or None)
        axis.set_title(TITLES.get(output, output), fontsize="medium")
        axis.set_xlabel(across)
    if others:
        axis.legend(fontsize="x-small")
    return figure


def means_over_seeds(data: Data, outputs: Sequence[str] | None = None) -> pl.DataFrame:
    """Each output for each combination of the inputs: the mean over the seeds, and half the width of its 95 %
    confidence interval in a column `± OUTPUT`.

    Raises DatasetError if there is one seed only.
    """
    if data.frame["seed"].n_unique() < 2:
        raise DatasetError("the sweep has one seed, so that there are no intervals")
    names = list(dict.fromkeys(name.partition("=")[0] for name in data.inputs))
    table: pl.DataFrame | None = None
    for output in data.outputs() if outputs is None else outputs:
        frame = data.frame.with_columns(pl.Series("_value", data.y(output)))
        means = over_seeds(frame, names, "_value")
        own = means.rename({"mean": output, "half_width": f"± {output}"}).drop("seeds")
        table = own if table is None else table.join(own, on=names, how="full", coalesce=True)
    assert table is not None
    return table.sort(names)


def learning_curves(scores: pl.DataFrame) -> Figure:
    """r² by the number of training rows, from the result of `weir.surrogate.learning_curve`: means and
    standard deviations over the splits."""
    summary = summarize(scores)
    outputs = summary["output"].unique(maintain_order=True).to_list()
    figure = Figure(figsize=(3.4 * len(outputs), 3.6), layout="constrained")
    for axis, output in zip(figure.subplots(1, len(outputs), squeeze=False)[0], outputs):
        for (model,), part in summary.filter(pl.col("output") == output).group_by(["model"], maintain_order=True):
            part = part.sort("rows")
            axis.errorbar(part["rows"], part["r2"], part["r2_std"].fill_null(0), marker="o", capsize=3, label=str(model))
        axis.set_title("mean of all" if output == "all" else str(output))
        axis.set_xlabel("rows to learn from")
        axis.set_ylim(min(0.0, max(-0.5, float(part["r2"].min()))), 1.02)  # type: ignore[arg-type]
    axis.legend()
    figure.supylabel("r²")
    return figure


def predicted_against_simulated(surrogate: Surrogate, unseen: Data) -> Figure:
    """One point per setting of the test data, for each output."""
    predicted = surrogate.predict(pl.DataFrame(unseen.x()))
    figure = Figure(figsize=(3.6 * len(surrogate.outputs), 3.8), layout="constrained")
    for axis, output in zip(figure.subplots(1, len(surrogate.outputs), squeeze=False)[0], surrogate.outputs):
        true, guess = unseen.y(output), predicted[output].to_numpy()
        axis.scatter(true, guess, s=6, alpha=0.4)
        _diagonal(axis, true, guess)
        axis.set_title(output)
        axis.set_xlabel("simulated")
    figure.supylabel("predicted")
    return figure


def pareto(result: TuneResult, measures: Sequence[str] = ()) -> Figure:
    """The simulated settings of a tuning, by the objective and each other measure; the front is filled."""
    front = {id(tried) for tried in result.pareto(measures)}
    names = [name for name in (measures or sorted(result.tried[0].values[0])) if name != "objective"]
    figure = Figure(figsize=(4.6 * len(names), 4), layout="constrained")
    for axis, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names):
        for tried in result.tried:
            on_front = id(tried) in front
            marker = "s" if tried.default else "o"
            color = "tab:red" if tried.default else "tab:blue" if tried.kept else "tab:gray"
            face = color if on_front else "none"
            axis.scatter(result.measure(tried, name), tried.cost, marker=marker, edgecolors=color, facecolors=face)
        axis.set_xlabel(name)
    figure.supylabel(f"objective: {result.objective}"[:60])
    return figure


def sweep_report(data: Data, *, models: Sequence[str] = ("paper-deep", "gaussian"), splits: int = 10) -> str:
    """A page about a sweep: its outputs over its keys, for thresholds heat maps and RED against drop-tail, and the
    accuracy of models. Plots that the data does not support are left out, with the reason."""
    page = _Page(f"A sweep of {len(data)} runs", f"Made by these parts of weir's code: {data.code}.")
    seeds = data.frame["seed"].n_unique()
    page.add("Outputs over the sweep's keys", lambda: over_axes(data))
    if seeds > 1:
        page.table(f"Means over {seeds} seeds, ± half of the 95 % confidence interval", means_over_seeds(data))
    if {ECN, LOW, HIGH} <= set(data.inputs):
        for output in ("share", "drops"):
            page.add(TITLES[output], lambda output=output: heat_maps(data, output))
        page.add("RED against drop-tail", lambda: red_against_drop_tail(data))

    def curves() -> Figure:
        scores = learning_curve(data, models, (0.01, 0.05, 0.2), splits=splits)
        page.table("Models", summarize(scores))
        return learning_curves(scores)

    def scatter() -> Figure:
        train = min(max(FEWEST, round(0.05 * len(data))), len(data) - 1)
        order = np.random.default_rng(0).permutation(len(data))
        surrogate = Surrogate.fit(data.take(order[:train]), data.outputs(), intervals=False)
        return predicted_against_simulated(surrogate, data.take(order[train:]))

    page.add("Learning curves", curves)
    page.add("Predicted against simulated", scatter)
    return page.text()


def tuning_report(result: TuneResult) -> str:
    """A page about a tuning: the best setting and the defaults, the Pareto front, all simulated settings.
    """
    page = _Page("Thresholds", f"{result.simulations} simulations")
    page.words(result.to_text())
    page.add("Trade-offs", lambda: pareto(result))
    page.table("All that was simulated", result.frame)
    return page.text()


class _Page:
    """An HTML page under construction."""

    def __init__(self, title: str, about: str) -> None:
        self.title = title
        self.parts = [f"<h1>{html.escape(title)}</h1><p>{html.escape(about)}</p>"]

    def add(self, title: str, draw: object) -> None:
        """Adds a plot, or the reason why it is missing."""
        self.parts.append(f"<h2>{html.escape(title)}</h2>")
        place = len(self.parts)
        try:
            figure = draw()  # type: ignore[operator]
        except DatasetError as error:
            self.parts.append(f"<p>Left out: {html.escape(str(error))}.</p>")
            return
        drawn = io.StringIO()
        figure.savefig(drawn, format="svg", metadata={"Date": None})
        svg = drawn.getvalue()
        self.parts.insert(place, svg[svg.index("<svg") :])

    def words(self, text: str) -> None:
        """Adds preformatted text."""
        self.parts.append(f"<pre>{html.escape(text)}</pre>")

    def table(self, title: str, frame: pl.DataFrame) -> None:
        """Adds a table."""
        head = "".join(f"<th>{html.escape(name)}</th>" for name in frame.columns)
        rows = ("".join(f"<td>{html.escape(_cell(value))}</td>" for value in row) for row in frame.iter_rows())
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        self.parts.append(f"<h3>{html.escape(title)}</h3><table><tr>{head}</tr>{body}</table>")

    def text(self) -> str:
        """Returns the complete page."""
        style = (
            "body{font:15px sans-serif;max-width:1200px;margin:2em auto;padding:0 1em}svg{max-width:100%;height:auto}"
            "table{border-collapse:collapse}td,th{padding:.2em .6em;border-bottom:1px solid #ccc;text-align:right}"
        )
        return (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(self.title)}</title>'
            f"<style>{style}</style><body>{''.join(self.parts)}</body></html>\n"
        )


def _widest(means: pl.DataFrame) -> str:
    """Says how exact the means of a map are; nothing with one seed."""
    widths = means["half_width"].drop_nulls().to_list()
    return f"means of {max(means['seeds'].to_list())} seeds, at most ± {max(widths):.3g} (95 %)" if widths else ""


def _cell(value: object) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def _diagonal(axis: object, *values: np.ndarray) -> None:
    both = np.concatenate(values)
    ends = [float(both.min()), float(both.max())]
    axis.plot(ends, ends, color="gray", linewidth=0.8)  # type: ignore[attr-defined]


def _needs(data: Data, *names: str) -> None:
    absent = [name for name in names if name not in data.inputs]
    if absent:
        raise DatasetError(f"the sweep does not go through {', '.join(absent)}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the page about a sweep, and returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m weir.pictures", description="Write a page about a sweep.")
    parser.add_argument("directory", metavar="DIR", help="where the sweep's rows are")
    parser.add_argument("report", metavar="FILE", help="the page")
    options = parser.parse_args(arguments)
    try:
        page = sweep_report(dataset(options.directory))
        Path(options.report).write_text(page, encoding="utf-8")
    except (WeirError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
