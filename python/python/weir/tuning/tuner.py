"""The search: learn, propose, simulate, until it no longer improves."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from weir import _weir
from weir.errors import TuneError
from weir.settings import Settings, Value, as_pairs
from weir.surrogate.data import Data, dataset, indicator
from weir.surrogate.model import Surrogate
from weir.surrogate.outputs import NAMED, column
from weir.sweeping import Points, Runs, carry_out
from weir.tuning.objective import Goal
from weir.tuning.result import Tried, TuneResult
from weir.tuning.space import (
    DEFAULT_SPACE,
    PREFIX,
    RED_MAX,
    RED_MIN,
    Condition,
    advice,
    candidates,
)

#: The maximum number of simulations per condition.
BUDGET = 57
#: Settings that are simulated before the first training.
FIRST = 20
#: Settings that are verified per round.
BATCH = 4
#: The parameter with the port's buffer, and its value in Table 1.
BUFFER = PREFIX + "buffer"
DEFAULT_BUFFER = "1.8MB"
#: Rounds without a better verified setting, after which the search ends.
PATIENCE = 3


@dataclass
class _Search:
    """All settings, and the results so far."""

    scenario: str
    conditions: Sequence[Condition]
    goal: Goal
    points: list[dict[str, Value]]
    settings: Settings
    seeds: Sequence[int]
    directory: Path
    jobs: int
    early_stop: bool | None
    model: str
    data: Data | None
    #: The port's buffer in bytes.
    buffer: float | None

    def __post_init__(self) -> None:
        self.inputs = [self._inputs(condition) for condition in self.conditions]
        #: Results by setting and condition: one row per seed.
        self.rows: dict[tuple[int, int], pl.DataFrame] = {}
        self.simulations = 0

    def check(self) -> None:
        """Raises TuneError where the conditions, the dataset and the objective are inconsistent."""
        for inputs, condition in zip(self.inputs, self.conditions):
            if inputs["error"].null_count() == 0:
                raise TuneError(f"{condition.name}: no setting can be simulated: {inputs['error'][0]}")
            if self.data is None:
                continue
            known = {name.partition("=")[0] for name in self.data.inputs}
            absent = sorted(known - set(inputs.columns))
            if absent:
                raise TuneError(f"{condition.name}: the data has runs with several {', '.join(absent)}: say which")
            extra = {name for name in inputs.columns if name != "error"} - known
            wrong = [name for name in sorted(extra) if name not in self.data.constants and not inputs[name].dtype == pl.String]
            if wrong:
                raise TuneError(f"the data knows nothing of {', '.join(wrong)}: leave it out, or the data")
        if not self._outputs():
            raise TuneError(
                f"`{self.goal.objective}` has no output in it; there are {', '.join(NAMED)}, and the columns of "
                "runs (docs/sweeps.md)"
            )

    def _point(self, number: int, condition: Condition) -> dict[str, Value]:
        return {**condition.settings, **self.points[number]}

    def _inputs(self, condition: Condition) -> pl.DataFrame:
        """Returns the columns of all settings under a condition, and an error where they contradict each
        other."""
        points = [as_pairs({**condition.settings, **point}) for point in self.points]
        sweep = _weir.Sweep.of_points(
            self.scenario, points, [1], as_pairs(self.settings), self.early_stop
        )
        frame = pl.DataFrame(sweep.inputs())
        return frame if "error" in frame.columns else frame.with_columns(error=pl.lit(None, pl.String))

    def simulate(self, numbers: Sequence[int]) -> None:
        """Runs these settings under all conditions with all seeds."""
        wanted = [
            (number, index)
            for number in numbers
            for index in range(len(self.conditions))
            if (number, index) not in self.rows
        ]
        if not wanted:
            return
        # All combinations of one sweep set the same keys; conditions may set different ones.
        for index, condition in enumerate(self.conditions):
            mine = [number for number, of in wanted if of == index]
            if not mine:
                continue
            points = Points(self.scenario, [self._point(number, condition) for number in mine], self.seeds)
            runs = self._run(points)
            self.simulations += len(mine) * len(self.seeds)
            for place, number in enumerate(mine):
                begin = place * len(self.seeds)
                these = pl.col("run").is_between(begin, begin + len(self.seeds) - 1)
                self.rows[number, index] = runs.frame.filter(these)

    def _run(self, points: Points) -> Runs:
        return carry_out(
            points,
            self.directory,
            settings=self.settings,
            resume=True,
            jobs=self.jobs,
            early_stop=self.early_stop,
        )

    def learn(self) -> list[Surrogate]:
        """Returns one surrogate per condition: the same one if a dataset covers all conditions."""
        outputs = self._outputs()
        if self.data is not None:
            data = self.data.with_rows(self._all_rows())
            surrogate = Surrogate.fit(data, outputs, self.model, intervals=False)
            return [surrogate] * len(self.conditions)
        fitted = []
        for index in range(len(self.conditions)):
            frames = [rows for (_, of), rows in sorted(self.rows.items()) if of == index]
            frame = pl.concat(frames, how="diagonal_relaxed")
            data = dataset(frame)
            fitted.append(Surrogate.fit(data, outputs, self.model, intervals=False))
        return fitted

    def _all_rows(self) -> pl.DataFrame:
        return pl.concat([rows for _, rows in sorted(self.rows.items())], how="diagonal_relaxed")

    def _outputs(self) -> list[str]:
        inputs = set(self.inputs[0].columns)
        return sorted(name for name in self.goal.names if name not in inputs)

    def predicted(self, surrogates: Sequence[Surrogate]) -> tuple[np.ndarray, np.ndarray, list[pl.DataFrame]]:
        """Returns the cost of each setting, whether it meets the constraints, and its predicted outputs."""
        costs, kept, values = [], np.ones(len(self.points), dtype=bool), []
        for surrogate, inputs in zip(surrogates, self.inputs):
            predicted = surrogate.predict(inputs)
            known = {**_columns(inputs), **_columns(predicted)}
            costs.append(self.goal.cost(known, len(self.points)))
            kept &= self.goal.holds(known, len(self.points)) & inputs["error"].is_null().to_numpy()
            values.append(predicted)
        return np.average(costs, axis=0, weights=self._weights()), kept, values

    def verified(self, number: int) -> tuple[float, bool, list[dict[str, float]]]:
        """Returns the simulated cost of a setting, averaged over the seeds, whether it meets the
        constraints under all conditions, and its outputs."""
        costs, kept, values = [], True, []
        for index in range(len(self.conditions)):
            rows = self.rows[number, index]
            failed = "error" in rows.columns and rows["error"].null_count() < rows.height
            if failed:
                return float("inf"), False, []
            inputs = self.inputs[index][[number]]
            known = {name: np.asarray(inputs[name].to_numpy()) for name in inputs.columns if name != "error"}
            constants = {name: float(value[0]) for name, value in known.items() if value.dtype.kind in "if"}
            outputs = {
                name: np.atleast_1d(column(rows, name, constants).mean()) for name in self._outputs()
            }
            costs.append(float(self.goal.cost({**known, **outputs}, 1)[0]))
            kept &= bool(self.goal.holds({**known, **outputs}, 1)[0])
            values.append({name: float(value[0]) for name, value in outputs.items()})
        return float(np.average(costs, weights=self._weights())), kept, values

    def _weights(self) -> list[float]:
        return [condition.weight for condition in self.conditions]


def _columns(frame: pl.DataFrame) -> dict[str, np.ndarray]:
    return {name: frame[name].to_numpy() for name in frame.columns if name != "error"}


def tune(
    conditions: Sequence[Condition | Settings],
    objective: str = "target-share=0.5",
    constraints: Sequence[str] = (),
    *,
    scenario: str | os.PathLike[str] = "buffer-sharing",
    space: Mapping[str, Sequence[Value]] | None = None,
    data: str | os.PathLike[str] | pl.DataFrame | Runs | Data | None = None,
    any_version: bool = False,
    settings: Settings | None = None,
    seeds: Sequence[int] = (1,),
    budget: int = BUDGET,
    batch: int = BATCH,
    model: str = "gaussian",
    out: str | os.PathLike[str] | None = None,
    jobs: int = 0,
    early_stop: bool | None = None,
    progress: Callable[[str], object] | None = None,
) -> TuneResult:
    """Searches the setting with the lowest `objective`, averaged over the conditions by their weights,
    among those that meet the constraints under each.

    A surrogate, trained on `data` and on the simulations so far, proposes settings; simulation decides. At
    most `budget` simulations are made per condition; the search ends earlier after three rounds without a
    better verified setting. `settings` apply to all runs. Results are kept in the directory `out`, and
    reused by a search that needs the same runs.

    Raises TuneError, ObjectiveError for an invalid objective or constraint, and the exceptions of
    `weir.sweep` and `weir.surrogate`.
    """
    cases = [each if isinstance(each, Condition) else Condition(each) for each in conditions]
    if not cases:
        raise TuneError("no conditions: say for which traffic, for example line_rate=25Gbps")
    if batch < 1 or not seeds:
        raise TuneError("a round verifies at least one setting, with at least one seed")
    goal = Goal.of(objective, constraints)
    known = None
    if data is not None:
        known = data if isinstance(data, Data) else dataset(data, any_version=any_version)
    with tempfile.TemporaryDirectory(prefix="weir-tune-") as temporary:
        space = dict(space or DEFAULT_SPACE)
        buffer = _buffer(os.fspath(scenario), settings or {})
        defaults = advice(space, buffer)
        search = _Search(
            scenario=os.fspath(scenario),
            conditions=cases,
            goal=goal,
            points=[*defaults.values(), *candidates(space, _sizes(space))],
            settings=settings or {},
            seeds=tuple(seeds),
            directory=Path(temporary if out is None else out),
            jobs=jobs,
            early_stop=early_stop,
            model=model,
            data=known,
            buffer=_weir.base_units(buffer),
        )
        search.check()
        return _Tuner(search, list(defaults), budget, batch, progress or (lambda _: None)).run()


def _sizes(space: Mapping[str, Sequence[Value]]) -> dict[str, float]:
    sizes = {}
    for key in (RED_MIN, RED_MAX):
        for value in space.get(key, ()):
            size = _weir.base_units(str(value))
            if size is None:
                raise TuneError(f"{key}: `{value}` is no size: write for example 400KB")
            sizes[str(value)] = size
    return sizes


def _buffer(scenario: str, settings: Settings) -> str:
    """Returns the port's buffer, the drop-tail limit: the scenario's parameter `buffer`, or Table 1's."""
    told = settings.get(BUFFER)
    if told is None:
        name = BUFFER.removeprefix(PREFIX)
        told = dict(_weir.parameters(scenario)).get(name, f'"{DEFAULT_BUFFER}"').strip('"')
    return str(told)


class _Tuner:
    """The rounds of a search."""

    def __init__(
        self,
        search: _Search,
        defaults: list[str],
        budget: int,
        batch: int,
        tell: Callable[[str], object],
    ) -> None:
        #: The first settings are the defaults.
        self.defaults = defaults
        self.search = search
        self.batch = batch
        self.tell = tell
        #: The number of settings that can be simulated under each condition.
        self.budget = budget // len(search.seeds)
        self.order: list[int] = []
        #: The prediction for a setting before it was simulated.
        self.expected: dict[int, tuple[float, list[dict[str, float]]]] = {}
        self.history: list[dict[str, Any]] = []
        first = 0 if search.data is not None else FIRST
        if self.budget < len(defaults) + max(first, 1):
            raise TuneError(
                f"a budget of {budget} simulations for each condition is too small: "
                f"{len(defaults)} defaults, {first} settings to begin with and {len(search.seeds)} seeds"
            )

    def run(self) -> TuneResult:
        self._simulate(list(range(len(self.defaults))))
        if self.search.data is None:
            self._simulate(self._spread(FIRST))
        idle = 0
        while idle < PATIENCE and len(self.order) < self.budget:
            surrogates = self.search.learn()
            cost, kept, values = self.search.predicted(surrogates)
            proposed = self._propose(cost, kept)
            if not proposed:
                break
            for number in proposed:
                self.expected[number] = (float(cost[number]), [frame.row(number, named=True) for frame in values])
            before = self._best_cost()
            self._simulate(proposed)
            after = self._best_cost()
            idle = 0 if after < before - 1e-12 else idle + 1
            self.history.append({"simulations": self.search.simulations, "best": after})
            self.tell(f"{self.search.simulations} simulations, best {after:.6g}")
        return self._result()

    def _simulate(self, numbers: list[int]) -> None:
        self.search.simulate(numbers)
        self.order += numbers

    def _spread(self, count: int) -> list[int]:
        """Returns settings that are far from each other: each the farthest from those chosen, with inputs
        scaled to their ranges."""
        inputs = self.search.inputs[0].drop("error")
        # Texts are as far from each other as the ends of a range.
        words = [(name, text) for name in inputs.select(pl.selectors.string()).columns for text in inputs[name].unique().sort()]
        inputs = inputs.with_columns([indicator(inputs, f"{name}={text}") for name, text in words])
        usable = self._usable()
        numeric = inputs.select(pl.selectors.numeric()).to_numpy().astype(float)
        if numeric.shape[1] == 0:
            return [number for number in usable if number not in self.order][:count]
        span = np.ptp(numeric, axis=0)
        scaled = (numeric - numeric.min(axis=0)) / np.where(span > 0, span, 1.0)
        chosen = list(self.order)
        found: list[int] = []
        for _ in range(min(count, len(usable))):
            distance = np.min(
                [np.linalg.norm(scaled[usable] - scaled[other], axis=1) for other in chosen] or [np.ones(len(usable))],
                axis=0,
            )
            best = usable[int(np.argmax(distance))]
            if best in chosen:
                break
            chosen.append(best)
            found.append(best)
        return found

    def _usable(self) -> list[int]:
        """Returns settings that are valid under every condition."""
        fine = np.logical_and.reduce([inputs["error"].is_null().to_numpy() for inputs in self.search.inputs])
        return [int(number) for number in np.flatnonzero(fine)]

    def _propose(self, cost: np.ndarray, kept: np.ndarray) -> list[int]:
        """Returns the best settings by the surrogate that were not simulated yet; where none meets the
        constraints, the best of the others, so that the search learns the boundary."""
        left = [number for number in self._usable() if number not in self.order]
        left.sort(key=lambda number: (not kept[number], cost[number]))
        return left[: min(self.batch, self.budget - len(self.order))]

    def _verified(self) -> list[tuple[int, float, bool, list[dict[str, float]]]]:
        return [(number, *self.search.verified(number)) for number in self.order]

    def _best_cost(self) -> float:
        costs = [cost for _, cost, kept, _ in self._verified() if kept]
        return min(costs, default=float("inf"))

    def _result(self) -> TuneResult:
        names = dict(enumerate(self.defaults))
        tried = [
            Tried(
                settings=self.search.points[number],
                default=names.get(number),
                cost=cost,
                kept=kept,
                values=values,
                expected=self.expected.get(number),
            )
            for number, cost, kept, values in self._verified()
            if values
        ]
        if not tried:
            raise TuneError("no setting could be simulated")
        return TuneResult(
            objective=str(self.search.goal.objective),
            constraints=[str(constraint) for constraint in self.search.goal.constraints],
            conditions=list(self.search.conditions),
            tried=tried,
            simulations=self.search.simulations,
            history=self.history,
            buffer=None if self.search.buffer is None else int(self.search.buffer),
        )
