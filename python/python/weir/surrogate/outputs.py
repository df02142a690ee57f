"""The outputs for models: columns of the dataset, and quantities derived from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import polars as pl

from weir.errors import DatasetError

#: The outputs of the paper's section 7.2.2.
DEFAULT = ("share", "drops", "queue_mean", "queue_max")

#: Bits per byte. Queues count IP bytes, without Ethernet framing.
BITS = 8


def port(columns: list[str]) -> str:
    """Returns the name of the measured port: `bottleneck`, or else the only one."""
    names = {name.split(".")[1] for name in columns if name.startswith("ports.")}
    if "bottleneck" in names:
        return "bottleneck"
    if len(names) == 1:
        return names.pop()
    raise DatasetError(
        f"which port is meant? there are {', '.join(sorted(names)) or 'none'}: name columns in full, "
        "ports.NAME.queue_mean_bytes"
    )


def _of_port(key: str) -> Callable[[pl.DataFrame, Mapping[str, float]], np.ndarray]:
    return lambda frame, _: _numbers(frame, f"ports.{port(frame.columns)}.{key}")


def _share(frame: pl.DataFrame, _: Mapping[str, float]) -> np.ndarray:
    return _numbers(frame, "groups.cubic.share")


def _drops(frame: pl.DataFrame, _: Mapping[str, float]) -> np.ndarray:
    name = port(frame.columns)
    kinds = [_numbers(frame, f"ports.{name}.drops.{kind}") for kind in ("red", "tail", "buffer")]
    total: np.ndarray = np.sum(kinds, axis=0)
    return total


def _delay(frame: pl.DataFrame, constants: Mapping[str, float]) -> np.ndarray:
    queue = _numbers(frame, f"ports.{port(frame.columns)}.queue_p99_bytes")
    if "line_rate_bps" in frame.columns:
        rate = _numbers(frame, "line_rate_bps")
        return np.asarray(queue * BITS / rate)
    if "line_rate_bps" in constants:
        return queue * BITS / constants["line_rate_bps"]
    raise DatasetError("delay_p99 takes the column line_rate_bps: sweep over the key of the line rate")


def _jain(frame: pl.DataFrame, _: Mapping[str, float]) -> np.ndarray:
    """Jain's index of the mean flow goodputs of the groups: 1 if a flow gets the same in all."""
    groups = sorted({name.split(".")[1] for name in frame.columns if name.startswith("groups.")})
    each = [
        _numbers(frame, f"groups.{group}.goodput_bps") / np.maximum(_numbers(frame, f"groups.{group}.flows"), 1)
        for group in groups
    ]
    rates = np.array(each)
    squares = len(groups) * (rates**2).sum(axis=0)
    return np.where(squares > 0, rates.sum(axis=0) ** 2 / np.maximum(squares, 1e-300), 1.0)


#: Short names of outputs.
NAMED: dict[str, Callable[[pl.DataFrame, Mapping[str, float]], np.ndarray]] = {
    "share": _share,
    "drops": _drops,
    "queue_mean": _of_port("queue_mean_bytes"),
    "queue_max": _of_port("queue_max_bytes"),
    "queue_p99": _of_port("queue_p99_bytes"),
    "marks": _of_port("marks"),
    "utilization": _of_port("utilization"),
    "delay_p99": _delay,
    "jain": _jain,
}

#: Outputs over several orders of magnitude, learned as logarithms: counts of packets.
COUNTS = ("drops", "marks", "retransmits", "timeouts")


def is_count(output: str) -> bool:
    """Returns whether it is a count of packets or events."""
    last = output.rsplit(".", 1)[-1]
    return last in COUNTS or ".drops." in output


def bounds(output: str) -> tuple[float, float]:
    """Returns the bounds of the output's range."""
    parts = ("share", "utilization", "jain", "fairness")
    return (0.0, 1.0) if output.rsplit(".", 1)[-1] in parts else (0.0, np.inf)


def column(frame: pl.DataFrame, output: str, constants: Mapping[str, float]) -> np.ndarray:
    """Returns an output's values.

    Raises DatasetError where there is no such output, or it is missing in some rows.
    """
    if output in NAMED:
        return NAMED[output](frame, constants)
    return _numbers(frame, output)


def _numbers(frame: pl.DataFrame, name: str) -> np.ndarray:
    if name not in frame.columns:
        known = [column for column in frame.columns if column.startswith(("groups.", "ports."))]
        raise DatasetError(
            f"there is no output `{name}`; there are {', '.join(NAMED)}, and the columns {', '.join(known)}"
        )
    if not frame[name].dtype.is_numeric() or frame[name].null_count():
        raise DatasetError(f"`{name}` is no number in all rows: leave it out")
    return frame[name].to_numpy().astype(float)
