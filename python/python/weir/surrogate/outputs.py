"""The outputs for models: columns of the dataset, and quantities derived from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import polars as pl

from weir.errors import DatasetError

#: The outputs of the paper's section 7.2.2.
DEFAULT = ("share", "drops", "queue_mean", "queue_max")

#: Bits per byte. Queues count IP bytes, without Ethernet framing.
BITS = 8


def ports(columns: list[str]) -> list[str]:
    """Returns the names of the measured ports: `bottleneck` alone if there is one, or else all."""
    names = {name.split(".")[1] for name in columns if name.startswith("ports.")}
    return ["bottleneck"] if "bottleneck" in names else sorted(names)


def groups(columns: Sequence[str]) -> list[str]:
    """Returns the names of the groups."""
    return sorted({name.split(".")[1] for name in columns if name.startswith("groups.")})


def default_outputs(frame: pl.DataFrame) -> tuple[str, ...]:
    """Returns what is learned if nothing is named: the paper's outputs where there is a group `cubic` beside another
    one; else for each group the slowdown, the completion time or the goodput, whatever it has, and the queues and drops
    of the measured ports. Outputs that are not known in all rows, or the same in all, are left out."""
    names = groups(frame.columns)
    if len(names) > 1 and "cubic" in names:
        return DEFAULT
    chosen = []
    for group in names:
        kinds = (f"groups.{group}.{key}" for key in ("slowdown.p99", "completion.p99_s", "goodput_bps"))
        known = [name for name in kinds if _is_known(frame, name)]
        chosen += known[:1]
    chosen += [name for name in ("queue_mean", "queue_max", "drops") if _varies(frame, name)]
    if not chosen:
        raise DatasetError("no output differs between the runs: name one of the dataset's columns")
    return tuple(chosen)


def _is_known(frame: pl.DataFrame, name: str) -> bool:
    return name in frame.columns and not frame[name].null_count() and frame[name].n_unique() > 1


def _varies(frame: pl.DataFrame, name: str) -> bool:
    try:
        return len(np.unique(NAMED[name](frame, {}))) > 1
    except DatasetError:
        return False


def _of_ports(key: str, join: Callable[..., np.ndarray]) -> Callable[[pl.DataFrame, Mapping[str, float]], np.ndarray]:
    def values(frame: pl.DataFrame, _: Mapping[str, float]) -> np.ndarray:
        names = ports(frame.columns)
        if not names:
            raise DatasetError("no port is measured: name one in the scenario's `measurements.ports`")
        return join([_numbers(frame, f"ports.{name}.{key}") for name in names], axis=0)

    return values


def _share(frame: pl.DataFrame, _: Mapping[str, float]) -> np.ndarray:
    return _numbers(frame, "groups.cubic.share")


def _drops(frame: pl.DataFrame, constants: Mapping[str, float]) -> np.ndarray:
    kinds = [_of_ports(f"drops.{kind}", np.sum)(frame, constants) for kind in ("red", "tail", "buffer")]
    total: np.ndarray = np.sum(kinds, axis=0)
    return total


def _delay(frame: pl.DataFrame, constants: Mapping[str, float]) -> np.ndarray:
    queue = NAMED["queue_p99"](frame, constants)
    if "line_rate_bps" in frame.columns:
        rate = _numbers(frame, "line_rate_bps")
        return np.asarray(queue * BITS / rate)
    if "line_rate_bps" in constants:
        return queue * BITS / constants["line_rate_bps"]
    raise DatasetError("delay_p99 takes the column line_rate_bps: sweep over the key of the line rate")


def _jain(frame: pl.DataFrame, _: Mapping[str, float]) -> np.ndarray:
    """Jain's index of the mean flow goodputs of the groups: 1 if a flow gets the same in all."""
    names = groups(frame.columns)
    each = [
        _numbers(frame, f"groups.{group}.goodput_bps") / np.maximum(_numbers(frame, f"groups.{group}.flows"), 1)
        for group in names
    ]
    rates = np.array(each)
    squares = len(names) * (rates**2).sum(axis=0)
    return np.where(squares > 0, rates.sum(axis=0) ** 2 / np.maximum(squares, 1e-300), 1.0)


#: Short names of outputs.
NAMED: dict[str, Callable[[pl.DataFrame, Mapping[str, float]], np.ndarray]] = {
    "share": _share,
    "drops": _drops,
    "queue_mean": _of_ports("queue_mean_bytes", np.mean),
    "queue_max": _of_ports("queue_max_bytes", np.max),
    "queue_p99": _of_ports("queue_p99_bytes", np.max),
    "marks": _of_ports("marks", np.sum),
    "utilization": _of_ports("utilization", np.mean),
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
