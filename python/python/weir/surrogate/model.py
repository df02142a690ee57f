"""A surrogate: predictions for settings, with their uncertainty."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from weir.errors import SurrogateError
from weir.surrogate import gaussian
from weir.surrogate.data import Data, indicator
from weir.surrogate.features import FEATURES
from weir.surrogate.models import DEFAULT as DEFAULT_MODEL
from weir.surrogate.models import model as known_model
from weir.surrogate.outputs import bounds, is_count

#: The minimum number of training rows.
FEWEST = 20
#: Cross-validation folds of the training data, for the uncertainty.
FOLDS = 5
#: The fraction of predictions whose interval has to contain the true value.
LEVEL = 0.9

Settings = pl.DataFrame | Mapping[str, Any] | Sequence[Mapping[str, Any]]


@dataclass
class Learned:
    """One output's regressors, and their uncertainty.

    They learn `(value - offset) / scale`, so that all outputs have the same scale.
    """

    regressors: list[Any]
    offset: float
    scale: float
    #: Half of the intervals' width in units of the expected error.
    quantile: float
    #: Predicts the error at a setting: intervals are wide where the model is bad.
    error: Any
    #: The minimum of the expected error.
    floor: float


class Surrogate:
    """Predicts outputs of runs from their inputs.

    Uncertainty is split-conformal: each fold of the training data is predicted by regressors trained
    without it. The errors, divided by the error expected there, have the quantile for which the intervals
    contain `level` of unseen settings of the same kind (Lei et al., "Distribution-free predictive inference
    for regression", 2018, section 5.2; by cross-validation as in Barber et al., 2021).
    """

    def __init__(
        self,
        model: str,
        inputs: tuple[str, ...],
        constants: dict[str, float],
        ranges: dict[str, tuple[float, float]],
        learned: dict[str, Learned],
        rows: int,
        level: float,
        code: str,
    ) -> None:
        self.model = model
        #: The columns of a setting.
        self.inputs = inputs
        #: Inputs that were the same in all rows.
        self.constants = constants
        #: The range of each input.
        self.ranges = ranges
        self.learned = learned
        #: The number of training rows.
        self.rows = rows
        #: The fraction of unseen settings whose value lies in the interval.
        self.level = level
        #: The version of the simulator's code.
        self.code = code

    @property
    def outputs(self) -> tuple[str, ...]:
        """The predicted outputs."""
        return tuple(self.learned)

    @classmethod
    def fit(
        cls,
        data: Data,
        outputs: Sequence[str] | None = None,
        model: str = DEFAULT_MODEL,
        *,
        seed: int = 0,
        level: float = LEVEL,
        intervals: bool = True,
    ) -> Surrogate:
        """Learns `outputs` from the rows of a dataset; without any, those of `Data.outputs`.

        Raises SurrogateError for too few rows, an output that is no number, and an unknown model.
        """
        if len(data) < FEWEST:
            raise SurrogateError(f"{len(data)} rows are too few to learn from: at least {FEWEST} are needed")
        if not 0 < level < 1:
            raise SurrogateError(f"level = {level}: it is the part of values in the intervals, 0 to 1")
        outputs = data.outputs() if outputs is None else outputs
        if not outputs:
            raise SurrogateError("no outputs to learn: name at least one")
        recipe = known_model(model)
        inputs = data.x()
        features = FEATURES[recipe.features](inputs)
        prototypes = recipe.make(seed, features.shape[1])
        learned = {}
        for output in outputs:
            target = _forward(data.y(output), recipe.logarithms and is_count(output))
            if not np.isfinite(target).all():
                raise SurrogateError(f"`{output}` is not finite in all rows")
            learned[output] = _learn(prototypes, features, target, seed, level, intervals)
        ranges = {name: (float(values.min()), float(values.max())) for name, values in inputs.items()}
        return cls(
            model, tuple(sorted(inputs)), dict(data.constants), ranges, learned, len(data), level, data.code
        )

    def predict(self, settings: Settings, *, intervals: bool = False) -> pl.DataFrame:
        """Returns one row per setting: its outputs, and with `intervals` the bounds that contain them with
        probability `level`, as `share_low` and `share_high`.

        Raises SurrogateError where an input is missing or no number.
        """
        inputs = self._inputs(settings)
        recipe = known_model(self.model)
        features = FEATURES[recipe.features](inputs)
        columns = {}
        for output, learned in self.learned.items():
            logarithm = recipe.logarithms and is_count(output)
            low, high = bounds(output)
            middle = _mean(learned.regressors, features) * learned.scale + learned.offset
            columns[output] = np.clip(_backward(middle, logarithm), low, high)
            if intervals:
                if learned.error is None:
                    raise SurrogateError("this surrogate was trained without intervals")
                expected = np.maximum(learned.error.predict(features), learned.floor)
                width = learned.quantile * expected * learned.scale
                for name, edge in (("low", middle - width), ("high", middle + width)):
                    columns[f"{output}_{name}"] = np.clip(_backward(edge, logarithm), low, high)
        return pl.DataFrame(columns)

    def _inputs(self, settings: Settings) -> dict[str, np.ndarray]:
        if isinstance(settings, Mapping):
            settings = {
                name: values if np.ndim(values) else [values] for name, values in settings.items()
            }
        frame = settings if isinstance(settings, pl.DataFrame) else pl.DataFrame(settings)
        words = [name for name in self.inputs if name not in frame.columns and name.partition("=")[0] in frame.columns]
        frame = frame.with_columns([indicator(frame, name) for name in words])
        missing = [name for name in self.inputs if name not in frame.columns]
        if missing:
            raise SurrogateError(f"settings have no {', '.join(missing)}; needed: {', '.join(self.inputs)}")
        for name, value in self.constants.items():
            if name not in frame.columns:
                continue
            if not np.allclose(frame[name].cast(pl.Float64).to_numpy(), value, rtol=1e-9, atol=0):
                raise SurrogateError(f"{name} was {value:g} in all runs that this surrogate knows: others need data")
        try:
            inputs = {name: frame[name].cast(pl.Float64).to_numpy() for name in self.inputs}
        except pl.exceptions.PolarsError as error:
            raise SurrogateError(f"inputs are numbers in base units: {error}") from error
        for name, values in inputs.items():
            if not np.isfinite(values).all():
                raise SurrogateError(f"{name} is no finite number in all settings")
        return inputs

    def is_inside(self, settings: Settings) -> np.ndarray:
        """Returns whether each setting is within the range of the training inputs."""
        inputs = self._inputs(settings)
        checks = [
            (values >= self.ranges[name][0]) & (values <= self.ranges[name][1])
            for name, values in inputs.items()
        ]
        inside: np.ndarray = np.logical_and.reduce(checks)
        return inside

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a file for `load`: JSON and skops, which executes no code from the file."""
        from weir.surrogate.store import save

        save(self, os.fspath(path))

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Surrogate:
        """Reads a file of `save`.

        Raises SurrogateError for a file of another kind or version, and for one with types that no
        surrogate contains.
        """
        from weir.surrogate.store import load

        return load(os.fspath(path))


def _learn(
    prototypes: list[Any],
    features: np.ndarray,
    target: np.ndarray,
    seed: int,
    level: float,
    intervals: bool,
) -> Learned:
    offset, scale = float(target.mean()), float(target.std()) or 1.0
    target = (target - offset) / scale
    # With hundreds of rows, more threads would only wait for each other.
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        # A kernel's parameter at its bound, a network that stops at its last iteration: the errors behind
        # the uncertainty show whether that matters.
        warnings.simplefilter("ignore", ConvergenceWarning)
        regressors = [clone(prototype).fit(features, target) for prototype in prototypes]
        if not intervals:
            return Learned(regressors, offset, scale, math.inf, None, 0.0)
        folds = KFold(FOLDS, shuffle=True, random_state=seed)
        residual = np.empty_like(target)
        for seen, unseen in folds.split(features):
            others = [
                _refitted(prototype, regressor, features[seen], target[seen])
                for prototype, regressor in zip(prototypes, regressors)
            ]
            residual[unseen] = np.abs(target[unseen] - _mean(others, features[unseen]))
    floor = 0.1 * float(residual.mean()) + 1e-12
    expected = np.empty_like(target)
    for seen, unseen in folds.split(features):
        error = _error_model(seed).fit(features[seen], residual[seen])
        expected[unseen] = np.maximum(error.predict(features[unseen]), floor)
    rank = min(math.ceil((len(target) + 1) * level), len(target))
    quantile = float(np.sort(residual / expected)[rank - 1])
    error = _error_model(seed).fit(features, residual)
    return Learned(regressors, offset, scale, quantile, error, floor)


def _error_model(seed: int) -> ExtraTreesRegressor:
    return ExtraTreesRegressor(20, min_samples_leaf=8, random_state=seed)


def _refitted(prototype: Any, fitted: Any, features: np.ndarray, target: np.ndarray) -> Any:
    """Fits to other rows. A Gaussian process keeps the kernel chosen for all rows: its few parameters
    hardly depend on a fifth of them, and choosing them takes most of the time."""
    fresh = clone(prototype)
    process = getattr(fresh, "named_steps", {}).get("gaussianprocessregressor")
    if process is not None:
        kernel = fitted.named_steps["gaussianprocessregressor"].kernel_
        process.set_params(kernel=kernel, optimizer=None)
    return fresh.fit(features, target)


def _mean(regressors: list[Any], features: np.ndarray) -> np.ndarray:
    mean: np.ndarray = np.mean([_predicted(regressor, features) for regressor in regressors], axis=0)
    return mean


def _predicted(regressor: Any, features: np.ndarray) -> np.ndarray:
    steps = getattr(regressor, "named_steps", {})
    if "gaussianprocessregressor" not in steps:
        return np.asarray(regressor.predict(features))
    return gaussian.mean(steps["gaussianprocessregressor"], steps["standardscaler"].transform(features))


def _forward(values: np.ndarray, logarithm: bool) -> np.ndarray:
    return np.log1p(values) if logarithm else values


def _backward(values: np.ndarray, logarithm: bool) -> np.ndarray:
    # No count of packets has sixty digits: a diverging model stays finite.
    return np.expm1(np.minimum(values, 138.0)) if logarithm else values
