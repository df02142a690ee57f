"""What notebooks show of runs and sweeps: HTML with SVG plots, without further packages."""

from __future__ import annotations

import html
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from weir.running import Run
    from weir.sweeping import Runs

#: The size of a plot, and of its margins for labels.
WIDTH, HEIGHT, LEFT, BELOW = 420, 170, 64, 28
#: Colours that people with any colour vision tell apart (Okabe and Ito).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
#: The most lines of a plot, and points of a line.
MOST_LINES, MOST_POINTS = 7, 400
#: Rows of a sweep that are shown.
MOST_ROWS = 10

Line = tuple[str, Sequence[float], Sequence[float]]


def run_page(run: Run) -> str:
    """Returns a run's title, groups and ports, with the queues and the goodput over time."""
    summary = run.summary
    groups = [
        (
            name,
            f"{group['flows']:,}",
            _amount(group.get("goodput_bps"), "bit/s"),
            _percent(group.get("share")),
            _amount((group.get("completion") or {}).get("p99_s"), "s"),
        )
        for name, group in summary["groups"].items()
    ]
    ports = [
        (
            name,
            _percent(port.get("utilization")),
            _amount(port.get("queue_mean_bytes"), "B"),
            _amount(port.get("queue_max_bytes"), "B"),
            f"{sum(port['drops'].values()):,}",
            f"{port['marks']:,}",
        )
        for name, port in summary["ports"].items()
    ]
    interrupted = " (interrupted)" if summary.get("interrupted") else ""
    return (
        f"<h4>{html.escape(summary['title'])}{interrupted}</h4>"
        + _table(("group", "flows", "goodput", "share", "99% of transfers within"), groups)
        + _table(("port", "utilization", "mean queue", "longest queue", "drops", "marks"), ports)
        + plot("queue in bytes", _over_time(run.samples, "port", "queue_bytes"))
        + plot("goodput in bit/s", _over_time(run.samples, "group", "goodput_bps"))
    )


def runs_page(runs: Runs) -> str:
    """Returns a sweep's first rows with its keys and shares, and how many runs there are."""
    frame = runs.frame
    shown = [*runs.keys, "seed", *[name for name in frame.columns if name.endswith((".share", ".goodput_bps"))]]
    shown = [name for name in dict.fromkeys(shown) if name in frame.columns]
    rows = [tuple(_cell(cell) for cell in row) for row in frame.select(shown).head(MOST_ROWS).iter_rows()]
    more = f", of which {MOST_ROWS} are shown" if frame.height > MOST_ROWS else ""
    failed = f", {runs.failed.height} failed" if runs.failed.height else ""
    told = f"<p>{frame.height} runs{failed}{more}: {html.escape(str(runs.path))}</p>"
    return told + _table(shown, rows)


def plot(title: str, lines: Sequence[Line]) -> str:
    """Returns lines over seconds as SVG; nothing without lines."""
    lines = [line for line in lines[:MOST_LINES] if line[1]]
    if not lines:
        return ""
    right = max(max(at) for _, at, _ in lines) or 1.0
    left = min(min(at) for _, at, _ in lines)
    top = max(max(values) for _, _, values in lines) or 1.0
    inner_width, inner_height = WIDTH - LEFT - 8, HEIGHT - BELOW - 20

    def place(at: float, value: float) -> str:
        x = LEFT + inner_width * (at - left) / ((right - left) or 1.0)
        return f"{x:.1f},{20 + inner_height * (1 - value / top):.1f}"

    drawn, legend = [], []
    for colour, (name, at, values) in zip(COLOURS, lines):
        points = " ".join(place(x, y) for x, y in zip(at, values))
        drawn.append(f'<polyline fill="none" stroke="{colour}" points="{points}"/>')
        legend.append(f'<tspan fill="{colour}" dx="8">{html.escape(name)}</tspan>')
    floor = 20 + inner_height
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-size="11" '
        f'font-family="sans-serif" role="img"><title>{html.escape(title)}</title>'
        f'<rect x="{LEFT}" y="20" width="{inner_width}" height="{inner_height}" fill="none" stroke="#999"/>'
        f'<text x="{LEFT}" y="13" fill="currentColor">{html.escape(title)}{"".join(legend)}</text>'
        f'<g fill="currentColor"><text x="{LEFT - 4}" y="28" text-anchor="end">{_amount(top, "")}</text>'
        f'<text x="{LEFT - 4}" y="{floor}" text-anchor="end">0</text>'
        f'<text x="{LEFT}" y="{floor + 14}">{_amount(left, "s")}</text>'
        f'<text x="{WIDTH - 8}" y="{floor + 14}" text-anchor="end">{_amount(right, "s")}</text></g>'
        + "".join(drawn)
        + "</svg>"
    )


def _over_time(samples: pl.DataFrame, of: str, column: str) -> list[Line]:
    """Returns a column of the samples over time: a line for each port or group."""
    if column not in samples.columns or of not in samples.columns:
        return []
    samples = samples.filter(pl.col(of).is_not_null() & pl.col(column).is_not_null())
    lines: list[Line] = []
    for name in samples[of].unique(maintain_order=True).to_list():
        line = samples.filter(pl.col(of) == name)
        line = line.gather_every(max(1, line.height // MOST_POINTS))
        lines.append((str(name), line["time_s"].to_list(), [float(value) for value in line[column].to_list()]))
    return lines


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    cells = "".join(f"<th>{html.escape(name)}</th>" for name in head)
    lines = ("".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows)
    return f"<table><tr>{cells}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f} %"


def _amount(value: float | None, unit: str) -> str:
    """Formats an amount with a prefix: 1.25 Gbit/s."""
    if value is None:
        return ""
    for factor, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""), (1e-3, "m"), (1e-6, "µ")):
        if abs(value) >= factor:
            return f"{value / factor:.3g} {prefix}{unit}".rstrip()
    return f"{value:.3g} {unit}".rstrip()


class Drawing:
    """A matplotlib figure that a notebook shows, without further settings: `weir.notebook.Drawing(figure)`."""

    def __init__(self, figure: Any) -> None:
        self.figure = figure

    def _repr_html_(self) -> str:
        drawn = io.StringIO()
        self.figure.savefig(drawn, format="svg", metadata={"Date": None})
        svg = drawn.getvalue()
        return svg[svg.index("<svg") :]
