"""Result of a search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from weir import _weir
from weir.errors import ExportError, TuneError
from weir.export import Profile
from weir.settings import Value
from weir.tuning.space import ECN, RED_MAX, RED_MIN, Condition


@dataclass(frozen=True)
class Tried:
    """A simulated setting."""

    settings: dict[str, Value]
    #: The name of the switch default, if it is one.
    default: str | None
    #: The objective, averaged over the conditions by their weights.
    cost: float
    #: Whether it meets the constraints under each condition.
    kept: bool
    #: The simulated outputs, for each condition.
    values: list[dict[str, float]]
    #: The surrogate's earlier prediction: the objective, and the outputs for each condition.
    expected: tuple[float, list[dict[str, float]]] | None


@dataclass(frozen=True)
class TuneResult:
    """The result of a search, and its cost."""

    objective: str
    constraints: list[str]
    conditions: list[Condition]
    #: All simulated settings, in order.
    tried: list[Tried]
    #: The number of simulations, of all conditions and seeds.
    simulations: int
    #: The best verified objective after each round.
    history: list[dict[str, Any]]
    buffer: int | None

    @cached_property
    def best(self) -> Tried:
        """The verified setting with the lowest objective among those that meet the constraints.

        Raises TuneError where none does.
        """
        kept = [tried for tried in self.tried if tried.kept]
        if not kept:
            raise TuneError(
                f"none of {len(self.tried)} simulated settings keeps to {' and '.join(self.constraints)}: loosen "
                "them, or widen the space"
            )
        return min(kept, key=lambda tried: tried.cost)

    @property
    def defaults(self) -> list[Tried]:
        """The defaults of switches."""
        return [tried for tried in self.tried if tried.default is not None]

    @cached_property
    def frame(self) -> pl.DataFrame:
        """One row per setting and condition: predicted and verified values side by side."""
        rows = []
        for number, tried in enumerate(self.tried):
            for index, condition in enumerate(self.conditions):
                row: dict[str, Any] = {
                    "setting": number,
                    "default": tried.default,
                    **{key: str(value) for key, value in tried.settings.items()},
                    "condition": condition.name,
                    "kept": tried.kept,
                    "objective": tried.cost,
                    "objective_predicted": tried.expected[0] if tried.expected else None,
                }
                for name, value in tried.values[index].items():
                    row[name] = value
                    row[f"{name}_predicted"] = tried.expected[1][index].get(name) if tried.expected else None
                rows.append(row)
        return pl.DataFrame(rows, infer_schema_length=None)

    def pareto(self, measures: Sequence[str] = ()) -> list[Tried]:
        """The settings that no other one beats in all measures at once; all measures are minimized:
        `objective`, and outputs, averaged over the conditions. By default the objective and each output in
        it and in the constraints."""
        names = list(measures) or ["objective", *sorted(self.tried[0].values[0])]
        points = np.array([[self.measure(tried, name) for name in names] for tried in self.tried])
        front = []
        for number, point in enumerate(points):
            beats = (points <= point).all(axis=1) & (points < point).any(axis=1)
            if not beats.any():
                front.append(self.tried[number])
        return sorted(front, key=lambda tried: tried.cost)

    def measure(self, tried: Tried, name: str) -> float:
        """Returns `objective`, or an output averaged over the conditions by their weights."""
        if name == "objective":
            return tried.cost
        if name not in tried.values[0]:
            raise TuneError(f"`{name}` was not simulated for; there are objective, {', '.join(tried.values[0])}")
        weights = [condition.weight for condition in self.conditions]
        return float(np.average([values[name] for values in tried.values], weights=weights))

    def profile(self, name: str = "weir", drop_probability: float = 0.05) -> Profile:
        """Returns the best setting as thresholds for `weir.export`.

        Raises ExportError where the search did not set all thresholds.
        """
        sizes = []
        for key in (ECN, RED_MIN, RED_MAX):
            if key not in self.best.settings:
                raise ExportError(f"the search did not set {key}: a profile for a switch has all three thresholds")
            size = _weir.base_units(str(self.best.settings[key]))
            if size is None:
                raise ExportError(f"{key} = {self.best.settings[key]} is no size in bytes")
            sizes.append(int(size))
        mark, low, high = sizes
        return Profile(name, mark, low, high, drop_probability, self.buffer)

    def to_dict(self) -> dict[str, Any]:
        """Returns the result for JSON."""
        return {
            "objective": self.objective,
            "constraints": self.constraints,
            "conditions": [asdict(condition) for condition in self.conditions],
            "simulations": self.simulations,
            "best": asdict(self.best),
            "defaults": [asdict(tried) for tried in self.defaults],
            "pareto": [asdict(tried) for tried in self.pareto()],
            "tried": [asdict(tried) for tried in self.tried],
            "history": self.history,
        }

    def to_text(self) -> str:
        """Returns the result for a terminal."""
        lines = [f"least {self.objective}" + "".join(f", {constraint}" for constraint in self.constraints)]
        lines.append(f"{self.simulations} simulations of {len(self.tried)} settings")
        for title, tried in [("best", self.best), *((str(each.default), each) for each in self.defaults)]:
            told = ", ".join(f"{key.rsplit('.', 1)[-1]} {value}" for key, value in tried.settings.items())
            broken = "" if tried.kept else "  (breaks a constraint)"
            lines.append(f"\n{title}: {told}{broken}")
            expected = f"  (predicted {tried.expected[0]:.4g})" if tried.expected else ""
            lines.append(f"  objective {tried.cost:.4g}{expected}")
            for index, (condition, values) in enumerate(zip(self.conditions, tried.values)):
                figures = []
                for name, value in values.items():
                    before = f" (predicted {tried.expected[1][index][name]:.4g})" if tried.expected else ""
                    figures.append(f"{name} {value:.4g}{before}")
                lines.append(f"  {condition.name}: " + ", ".join(figures))
        return "\n".join(lines) + "\n"
