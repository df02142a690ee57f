"""The search space, and the conditions for which it is searched."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from weir.errors import TuneError
from weir.settings import Settings, Value

PREFIX = "parameters."
ECN, RED_MIN, RED_MAX = (PREFIX + name for name in ("ecn_threshold", "red_min", "red_max"))

#: The paper's Table 1, RED thresholds in steps of 200 KB: 1,155 settings.
DEFAULT_SPACE: dict[str, Sequence[Value]] = {
    ECN: [f"{size}KB" for size in range(0, 401, 20)],
    RED_MIN: [f"{size}KB" for size in range(0, 1801, 200)],
    RED_MAX: [f"{size}KB" for size in range(0, 1801, 200)],
}

#: A full packet in bytes, the unit of Linux's DCTCP advice.
PACKET = 1500
#: Advice of Linux and the DCTCP paper: packets at 1 Gbps and at 10 Gbps.
ADVICE = {"K = 20 packets, drop-tail": 20, "K = 65 packets, drop-tail": 65}


@dataclass(frozen=True)
class Condition:
    """Traffic and network for which the thresholds are tuned."""

    #: `{"line_rate": "25Gbps", "cubic_rtt": "50ms"}`: paths in the scenario, or names of its parameters.
    settings: Settings
    #: Its weight in the average.
    weight: float = 1.0
    name: str = field(default="")

    def __post_init__(self) -> None:
        if not self.settings:
            raise TuneError("a condition sets at least one key: line_rate=25Gbps")
        if not self.weight > 0:
            raise TuneError(f"weight = {self.weight}: above 0")
        full = {path(key): value for key, value in self.settings.items()}
        object.__setattr__(self, "settings", full)
        if not self.name:
            told = [f"{key.rsplit('.', 1)[-1]}={value}" for key, value in full.items()]
            object.__setattr__(self, "name", ", ".join(told))


def path(key: str) -> str:
    """Returns a key's path: a name without a dot is one of the scenario's parameters."""
    return key if "." in key or key in ("duration", "warm_up", "seed") else PREFIX + key


def candidates(space: Mapping[str, Sequence[Value]], size: dict[str, float]) -> list[dict[str, Value]]:
    """Returns all combinations of the space, without those whose RED thresholds are in the wrong order.
    `size` maps the text of both keys' values to bytes."""
    if not space or not all(space.values()):
        raise TuneError("the space is empty: write values for at least one key")
    points = [dict(zip(space, values)) for values in itertools.product(*space.values())]
    if RED_MIN in space and RED_MAX in space:
        points = [point for point in points if size[str(point[RED_MIN])] <= size[str(point[RED_MAX])]]
    if RED_MAX in space:
        # `red_max` = 0 drops all packets without ECN: no useful setting.
        points = [point for point in points if size[str(point[RED_MAX])] > 0]
    if len(points) < 2:
        raise TuneError("the space has less than two settings: there is nothing to choose")
    return points


def advice(space: Mapping[str, Sequence[Value]], buffer: Value) -> dict[str, dict[str, Value]]:
    """Returns the default settings of switches, drop-tail at the whole buffer, where the space has the keys
    for them and no others."""
    if ECN not in space or not set(space) <= {ECN, RED_MIN, RED_MAX}:
        return {}
    return {
        name: {key: f"{packets * PACKET}B" if key == ECN else buffer for key in space}
        for name, packets in ADVICE.items()
    }
