"""The features of a setting for models.

`raw` is the paper's choice: the inputs as they are. `physical` adds features from the mechanisms: the
bandwidth-delay products that thresholds compete with, the ratios of thresholds, and the square root of the
queue that a window-based sender with a given RTT sustains.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

Inputs = Mapping[str, np.ndarray]

#: A full-sized packet, in bytes.
PACKET = 1500.0
#: DCTCP's RTT in Table 1, where a dataset does not vary it, in seconds.
DCTCP_RTT = 50e-6


def raw(inputs: Inputs) -> np.ndarray:
    """The inputs as they are, in the order of their names."""
    return np.column_stack([inputs[name] for name in sorted(inputs)])


def physical(inputs: Inputs) -> np.ndarray:
    """The inputs, with sizes, rates and times as logarithms, and derived quantities."""
    columns = [_scaled(name, inputs[name]) for name in sorted(inputs)]
    low, high = inputs.get("red_min_bytes"), inputs.get("red_max_bytes")
    mark = inputs.get("ecn_threshold_bytes")
    if low is not None and high is not None:
        middle = (low + high) / 2
        columns += [_log(middle), (high - low) / (high + PACKET), (high > low).astype(float)]
        if mark is not None:
            columns += [
                (mark - low) / (mark + low + PACKET),
                (mark - high) / (mark + high + PACKET),
                _log(np.minimum(mark, high)),
                np.sqrt(np.maximum(low - mark, 0.0) / PACKET),
            ]
    rate = inputs.get("line_rate_bps")
    if rate is not None:
        dctcp_bdp = rate * DCTCP_RTT / 8
        if mark is not None:
            columns.append(mark / (mark + dctcp_bdp))
        rtt = inputs.get("cubic_rtt_s")
        if rtt is not None:
            bdp = rate * rtt / 8
            columns.append(_log(bdp))
            if low is not None and high is not None:
                columns += [low / (low + bdp), np.sqrt(high / bdp), np.sqrt(low / bdp)]
            if mark is not None:
                columns.append(np.sqrt(mark / bdp))
    return np.column_stack(columns)


def _scaled(name: str, values: np.ndarray) -> np.ndarray:
    if name.endswith("_bytes"):
        return _log(values)
    if name.endswith(("_bps", "_s")):
        values = np.log(np.maximum(values, 1e-12))
    return values


def _log(size: np.ndarray) -> np.ndarray:
    """The logarithm of a size in packets, finite at zero."""
    logarithm: np.ndarray = np.log1p(size / PACKET)
    return logarithm


FEATURES: dict[str, Callable[[Inputs], np.ndarray]] = {"raw": raw, "physical": physical}
