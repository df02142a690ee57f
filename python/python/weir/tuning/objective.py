"""The goal of a tuning: a cost to minimize, and constraints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weir.errors import ObjectiveError
from weir.tuning.expression import Expression


def _target_share(value: float) -> str:
    if not 0 <= value <= 1:
        raise ObjectiveError(f"target-share={value}: CUBIC's part of the goodput, 0 to 1")
    return f"abs(share - {value})"


def _fairness(weight: float) -> str:
    if weight <= 0:
        raise ObjectiveError(f"fairness={weight}: how much CUBIC is to get for each byte of DCTCP's, above 0")
    cubic = f"(share / {weight})"
    return f"1 - ({cubic} + 1 - share) ** 2 / (2 * ({cubic} ** 2 + (1 - share) ** 2))"


#: The built-in objectives: the minimized expression, from the argument, and the argument's default.
BUILT_IN: dict[str, tuple[Callable[[float], str], float | None]] = {
    # Distance of CUBIC's share of the goodput from a target.
    "target-share": (_target_share, 0.5),
    # 1 minus Jain's index of the two shares, CUBIC's weighted.
    "fairness": (_fairness, 1.0),
    # The 99th percentile of the queueing delay, in seconds.
    "delay": (lambda _: "delay_p99", None),
    # Dropped packets.
    "drops": (lambda _: "drops", None),
    # The fraction of time in which the link was idle.
    "utilization": (lambda _: "1 - utilization", None),
}


def expression(text: str) -> Expression:
    """Parses an objective: a built-in one, `target-share=0.4`, or an expression."""
    name, equals, value = text.strip().partition("=")
    if name not in BUILT_IN or value.startswith("="):
        return Expression(text)
    make, default = BUILT_IN[name]
    if not equals:
        return Expression(make(default if default is not None else 0.0))
    if default is None:
        raise ObjectiveError(f"`{name}` takes no value")
    try:
        return Expression(make(float(value)))
    except ValueError as error:
        raise ObjectiveError(f"`{text}`: write {name}=NUMBER") from error


@dataclass(frozen=True)
class Goal:
    """An objective under constraints."""

    objective: Expression
    constraints: tuple[Expression, ...]

    @classmethod
    def of(cls, objective: str, constraints: Sequence[str] = ()) -> Goal:
        """Parses both. Raises ObjectiveError."""
        return cls(expression(objective), tuple(Expression(text) for text in constraints))

    @property
    def names(self) -> frozenset[str]:
        """All names that they use."""
        return self.objective.names.union(*(constraint.names for constraint in self.constraints))

    def cost(self, values: Mapping[str, Any], rows: int) -> np.ndarray:
        """Returns the objective of each row."""
        return np.broadcast_to(self.objective(values), (rows,))

    def holds(self, values: Mapping[str, Any], rows: int) -> np.ndarray:
        """Returns whether each row meets all constraints."""
        kept = np.ones(rows, dtype=bool)
        for constraint in self.constraints:
            kept &= np.broadcast_to(constraint(values), (rows,)) != 0
        return kept
