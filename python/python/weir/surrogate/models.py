"""The models by name: the paper's, and better ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from sklearn.linear_model import Ridge
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from weir.errors import SurrogateError


@dataclass(frozen=True)
class Model:
    """How a surrogate learns one output."""

    #: Description and source.
    about: str
    #: Its features: `raw` or `physical`.
    features: str
    #: Whether counts are learned by their logarithm.
    logarithms: bool
    #: Creates the regressors whose mean is the prediction, from a seed and the number of inputs.
    make: Callable[[int, int], list[Any]]


def _shallow(seed: int, width: int) -> list[Any]:
    return [make_pipeline(StandardScaler(), PolynomialFeatures(2), Ridge(1e-3))]


def _deep(seed: int, width: int) -> list[Any]:
    network = MLPRegressor(
        hidden_layer_sizes=(100, 100), solver="lbfgs", max_iter=2000, random_state=seed
    )
    return [make_pipeline(StandardScaler(), network)]


def _gaussian(seed: int, width: int) -> list[Any]:
    kernel = ConstantKernel(1.0, (1e-2, 1e3)) * Matern([2.0] * width, (0.05, 1e3), nu=2.5)
    kernel = kernel + WhiteKernel(1e-2, (1e-6, 1.0))
    process = GaussianProcessRegressor(kernel, random_state=seed)
    return [make_pipeline(StandardScaler(), process)]


def _boosting(seed: int, width: int) -> list[Any]:
    return [
        HistGradientBoostingRegressor(
            learning_rate=0.06,
            max_iter=300,
            max_leaf_nodes=12,
            min_samples_leaf=5,
            l2_regularization=0.1,
            random_state=seed,
        )
    ]


def _trees(seed: int, width: int) -> list[Any]:
    return [ExtraTreesRegressor(200, min_samples_leaf=1, random_state=seed)]


def _network(seed: int, width: int) -> list[Any]:
    networks = []
    for member in range(3):
        network = MLPRegressor(
            hidden_layer_sizes=(32, 32),
            activation="tanh",
            solver="lbfgs",
            alpha=0.05,
            max_iter=600,
            random_state=seed + member,
        )
        networks.append(make_pipeline(StandardScaler(), network))
    return networks


def _ensemble(seed: int, width: int) -> list[Any]:
    return _gaussian(seed, width) + _network(seed, width) + _boosting(seed, width)


#: The default model.
DEFAULT = "gaussian"

MODELS: dict[str, Model] = {
    "paper-shallow": Model(
        "the paper's shallow model, of which it says no more: here a ridge regression on quadratic terms",
        "raw",
        False,
        _shallow,
    ),
    "paper-deep": Model(
        "section 7.2.4: a two-layer MLPRegressor with L-BFGS; 100 units a layer, scikit-learn's default width",
        "raw",
        False,
        _deep,
    ),
    "boosting": Model("gradient boosting of histogram trees", "physical", True, _boosting),
    "trees": Model("extremely randomized trees", "physical", True, _trees),
    "network": Model("the mean of three small networks of two layers, L-BFGS", "physical", True, _network),
    "gaussian": Model("a Gaussian process with an anisotropic Matérn kernel", "physical", True, _gaussian),
    "ensemble": Model("the mean of gaussian, network and boosting", "physical", True, _ensemble),
}


def model(name: str) -> Model:
    """Returns the model of this name.

    Raises SurrogateError where there is none.
    """
    if name not in MODELS:
        raise SurrogateError(f"there is no model `{name}`; there are {', '.join(MODELS)}")
    return MODELS[name]
