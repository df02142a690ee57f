"""Thresholds in the formats of switches.

    profile = Profile("datacenter", ecn_threshold=65_000, red_min=400_000, red_max=400_000)
    exported = sonic(profile, queues=["Ethernet0|3"])
    print(exported.text)                  # config_db.json
    exported.warnings                     # what the target cannot express

All sizes are bytes. The simulator's behavior, which an export has to express: a packet with ECT is marked
when the queue is above `ecn_threshold`; one without is dropped with a probability that rises from 0 at
`red_min` to `drop_probability` at `red_max`, and always above `red_max`. Equal RED thresholds are drop-tail
at that level.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from weir.errors import ExportError

#: Size of a full packet, a parameter of `tc red`.
PACKET = 1500
#: The largest size in `tc red`: 32 bits.
TC_LARGEST = 2**32 - 1

Prefer = Literal["marking", "dropping"]


@dataclass(frozen=True)
class Profile:
    """Thresholds of a queue, in bytes."""

    name: str
    ecn_threshold: int
    red_min: int
    red_max: int
    #: Drop probability at `red_max`, 0 to 1.
    drop_probability: float = 0.05
    #: The buffer available to the port, if it is known: thresholds above it have no effect.
    buffer: int | None = None
    #: The line rate in bits per second, from which `tc red` estimates idle time.
    line_rate: int | None = None

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9_.\-]{1,64}", self.name):
            raise ExportError(f"profile name `{self.name}`: up to 64 letters, digits, `_`, `-` and `.`")
        for key in ("ecn_threshold", "red_min", "red_max"):
            value = getattr(self, key)
            if value < 0 or value != int(value):
                raise ExportError(f"{key} = {value}: thresholds are whole bytes, 0 or more")
        if self.red_min > self.red_max:
            raise ExportError(f"red_min = {self.red_min} is above red_max = {self.red_max}")
        if not 0 <= self.drop_probability <= 1:
            raise ExportError(f"drop_probability = {self.drop_probability}: 0 to 1")
        if self.red_max == 0:
            raise ExportError("red_max = 0 drops every packet without ECN: no switch is configured so")
        if self.buffer is not None and self.red_min > self.buffer:
            raise ExportError(
                f"red_min = {self.red_min} is above the buffer of {self.buffer} bytes: it would never act"
            )

    @property
    def is_drop_tail(self) -> bool:
        """Whether all packets without ECN are dropped above one level, and none below."""
        return self.red_min == self.red_max

    @property
    def percent(self) -> int:
        """The drop probability in whole percent, as switches configure it; 100 for drop-tail."""
        if self.is_drop_tail:
            return 100
        percent = self.drop_probability * 100
        if abs(percent - round(percent)) > 1e-9 or percent < 1:
            raise ExportError(
                f"drop_probability = {self.drop_probability}: switches take whole percents from 1; "
                f"use {max(1, round(percent)) / 100}"
            )
        return round(percent)


@dataclass(frozen=True)
class Exported:
    """A configuration for a target."""

    target: str
    #: The configuration to load.
    text: str
    #: Features that the target cannot express, and what happens instead.
    warnings: tuple[str, ...] = field(default=())


def sonic(
    profile: Profile,
    *,
    queues: Sequence[str] = (),
    dialect: Literal["2026", "shared"] = "2026",
    prefer: Prefer = "marking",
    cell: int = 1,
) -> Exported:
    """SONiC's `WRED_PROFILE`, and with `queues` (`Ethernet0|3`) their binding, as JSON for config_db.

    The dialect `2026` (YANG revision 2026-06-23) has separate marking thresholds. In `shared`, for all
    earlier revisions, one pair marks and drops: that of the ECN threshold, or with `prefer="dropping"` that
    of RED. Thresholds are rounded down to whole cells of `cell` bytes, for chips that count in cells.
    """
    if dialect not in ("2026", "shared"):
        raise ExportError(f"there is no SONiC dialect `{dialect}`: write 2026 or shared")
    for queue in queues:
        if not re.fullmatch(r"Ethernet\d+\|\d+(-\d+)?", queue):
            raise ExportError(f"queue `{queue}`: write PORT|QUEUE, for example Ethernet0|3")
    mark, low, high = (_cells(profile, key, cell) for key in ("ecn_threshold", "red_min", "red_max"))
    warnings = []
    entries = {"ecn": "ecn_all"}
    if dialect == "shared":
        low, high, percent = _one_pair(profile, prefer, (mark, low, high))
        warnings.append(_told(profile, prefer, "SONiC before the YANG revision 2026-06-23"))
    else:
        percent = profile.percent
    for color in ("green", "yellow", "red"):
        entries[f"wred_{color}_enable"] = "true"
        entries[f"{color}_min_threshold"] = str(low)
        entries[f"{color}_max_threshold"] = str(high)
        entries[f"{color}_drop_probability"] = str(percent)
        if dialect == "2026":
            entries[f"ecn_{color}_min_threshold"] = str(mark)
            entries[f"ecn_{color}_max_threshold"] = str(mark)
            entries[f"ecn_{color}_mark_probability"] = "100"
    config: dict[str, Any] = {"WRED_PROFILE": {profile.name: entries}}
    if queues:
        config["QUEUE"] = {queue: {"wred_profile": profile.name} for queue in queues}
    warnings += _above_buffer(profile)
    return Exported("sonic", _json(config), tuple(warnings))


def openconfig(
    profile: Profile, *, queues: Sequence[str] = (), prefer: Prefer = "marking", cell: int = 1
) -> Exported:
    """OpenConfig's `queue-management-profile` (openconfig-qos-mem-mgmt), as RFC 7951 JSON, and with
    `queues` (`Ethernet1/1|3`) the interfaces that use it. One pair of thresholds marks and drops: see
    `sonic`."""
    levels = tuple(_cells(profile, key, cell) for key in ("ecn_threshold", "red_min", "red_max"))
    low, high, percent = _one_pair(profile, prefer, levels)
    uniform = {
        # RFC 7951, section 6.1: 64-bit integers are strings.
        "min-threshold": str(low),
        "max-threshold": str(high),
        "enable-ecn": True,
        "drop": True,
        "max-drop-probability-percent": percent,
    }
    qos: dict[str, Any] = {
        "queue-management-profiles": {
            "queue-management-profile": [
                {
                    "name": profile.name,
                    "config": {"name": profile.name},
                    "wred": {"uniform": {"config": uniform}},
                }
            ]
        }
    }
    if queues:
        qos["interfaces"] = {"interface": [_interface(profile.name, queue) for queue in queues]}
    warnings = [
        _told(profile, prefer, "OpenConfig"),
        "OpenConfig's thresholds are of the average queue: set the device's weight so that it follows the "
        "queue itself",
        *_above_buffer(profile),
    ]
    return Exported("openconfig", _json({"openconfig-qos:qos": qos}), tuple(warnings))


def linux_tc(profile: Profile, *, device: str = "eth0", prefer: Prefer = "marking") -> Exported:
    """A `tc` command for Linux's `red`. One pair of thresholds marks and drops: see `sonic`."""
    if not re.fullmatch(r"[A-Za-z0-9_.\-@]{1,15}", device):
        raise ExportError(f"device `{device}`: an interface's name, up to 15 characters")
    levels = (profile.ecn_threshold, profile.red_min, profile.red_max)
    low, high, percent = _one_pair(profile, prefer, levels)
    if low < PACKET:
        raise ExportError(f"{low} bytes: tc red takes thresholds from one packet ({PACKET} bytes) on")
    limit = profile.buffer or 4 * high
    if limit > TC_LARGEST:
        raise ExportError(f"{limit} bytes: tc red takes less than 4 GiB")
    if high > limit:
        raise ExportError(f"the threshold of {high} bytes is above the buffer of {limit}: tc red has none of it")
    # tc-red(8): the burst that an idle queue admits; less than min/avpkt is rejected.
    burst = math.ceil((2 * low + high) / (3 * PACKET)) + 1
    rate = "" if profile.line_rate is None else f" bandwidth {profile.line_rate}bit"
    text = (
        f"tc qdisc replace dev {device} root handle 1: red limit {limit} min {low} max {high} avpkt {PACKET} "
        f"burst {burst} probability {percent / 100:g}{rate} ecn\n"
    )
    warnings = [
        _told(profile, prefer, "tc red"),
        "tc red compares its thresholds with an average of the queue, which follows bursts late",
    ]
    return Exported("linux-tc", text, tuple(warnings))


#: Export functions by target name.
TARGETS: dict[str, Callable[..., Exported]] = {
    "sonic": sonic,
    "openconfig": openconfig,
    "linux-tc": linux_tc,
}


def export(target: str, profile: Profile, **options: Any) -> Exported:
    """Exports a profile in the format of one of `TARGETS`.

    Raises ExportError for an unknown target, and for features that the target cannot express.
    """
    if target not in TARGETS:
        raise ExportError(f"there is no target `{target}`; there are {', '.join(TARGETS)}")
    try:
        return TARGETS[target](profile, **options)
    except TypeError as error:
        raise ExportError(f"{target}: {error}") from error


def _cells(profile: Profile, key: str, cell: int) -> int:
    if cell < 1:
        raise ExportError(f"cell = {cell}: the bytes of a cell of the chip's buffer, 1 or more")
    value = int(getattr(profile, key))
    rounded = value // cell * cell
    if value and not rounded:
        raise ExportError(f"{key} = {value} is less than a cell of {cell} bytes")
    return rounded


def _one_pair(profile: Profile, prefer: Prefer, levels: tuple[int, ...]) -> tuple[int, int, int]:
    """The minimum and maximum level and the probability in percent, for a single pair of thresholds."""
    mark, low, high = levels
    if prefer == "marking":
        if mark == 0:
            raise ExportError(
                "ecn_threshold = 0: one pair of thresholds marks and drops, and would drop every packet "
                "without ECN; use prefer=dropping, or a target that marks by thresholds of its own"
            )
        return mark, mark, 100
    if prefer == "dropping":
        return low, high, profile.percent
    raise ExportError(f"prefer = `{prefer}`: write marking or dropping")


def _told(profile: Profile, prefer: Prefer, target: str) -> str:
    lost = (
        f"packets without ECN are dropped at the ECN threshold of {profile.ecn_threshold} bytes and not at "
        f"{profile.red_min} to {profile.red_max}"
        if prefer == "marking"
        else f"packets with ECN are marked from {profile.red_min} bytes on and not at {profile.ecn_threshold}"
    )
    return (
        f"{target} marks and drops by one pair of thresholds: {lost}. What was simulated holds only where "
        "both have a queue of their own"
    )


def _above_buffer(profile: Profile) -> list[str]:
    if profile.buffer is None:
        return []
    keys = [key for key in ("ecn_threshold", "red_max") if getattr(profile, key) > profile.buffer]
    return [f"{key} is above the buffer of {profile.buffer} bytes, which fills up first" for key in keys]


def _interface(name: str, queue: str) -> dict[str, Any]:
    interface, _, number = queue.rpartition("|")
    if not interface or not number:
        raise ExportError(f"queue `{queue}`: write INTERFACE|QUEUE, for example Ethernet1/1|3")
    config = {"name": number, "queue-management-profile": name}
    return {
        "interface-id": interface,
        "config": {"interface-id": interface},
        "output": {"queues": {"queue": [{"name": number, "config": config}]}},
    }


def _json(value: Any) -> str:
    return json.dumps(value, indent=4) + "\n"
