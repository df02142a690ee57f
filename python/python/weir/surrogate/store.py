"""Surrogates as files.

A file is a zip archive of a manifest, `surrogate.json`, and one skops file per regressor. skops loads only
types on the reader's list: an untrusted file cannot run code, as a pickle could.
"""

from __future__ import annotations

import json
import zipfile
from typing import Any

import sklearn
import skops.io

from weir.errors import SurrogateError
from weir.surrogate.model import Learned, Surrogate
from weir.surrogate.models import MODELS

#: Increases when a key changes its meaning or is removed.
VERSION = 1
FORMAT = "weir surrogate"
MANIFEST = "surrogate.json"

#: Types in scikit-learn's regressors beyond those that skops trusts by default.
TRUSTED = [
    "sklearn._loss.link.IdentityLink",
    "sklearn._loss.link.Interval",
    "sklearn._loss.loss.HalfSquaredError",
    "sklearn.ensemble._hist_gradient_boosting.binning._BinMapper",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn._loss._loss.CyHalfSquaredError",
    "sklearn.tree._tree.Tree",
    *(
        f"sklearn.gaussian_process.kernels.{kernel}"
        for kernel in ("ConstantKernel", "Matern", "Product", "Sum", "WhiteKernel")
    ),
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
]


def save(surrogate: Surrogate, path: str) -> None:
    """Writes a surrogate."""
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "model": surrogate.model,
        "inputs": surrogate.inputs,
        "constants": surrogate.constants,
        "ranges": surrogate.ranges,
        "rows": surrogate.rows,
        "level": surrogate.level,
        "code": surrogate.code,
        "scikit-learn": sklearn.__version__,
        "outputs": {
            output: {
                "regressors": len(learned.regressors),
                "offset": learned.offset,
                "scale": learned.scale,
                "quantile": learned.quantile if learned.error is not None else None,
                "floor": learned.floor,
            }
            for output, learned in surrogate.learned.items()
        },
    }
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(MANIFEST, json.dumps(manifest, indent=2))
        for number, learned in enumerate(surrogate.learned.values()):
            for member, regressor in enumerate(learned.regressors):
                archive.writestr(f"{number}-{member}.skops", skops.io.dumps(regressor))
            if learned.error is not None:
                archive.writestr(f"{number}-error.skops", skops.io.dumps(learned.error))


def load(path: str) -> Surrogate:
    """Reads a surrogate."""
    try:
        with zipfile.ZipFile(path) as archive:
            manifest = json.loads(archive.read(MANIFEST))
            _check(path, manifest)
            learned = {
                output: _learned(archive, number, about)
                for number, (output, about) in enumerate(manifest["outputs"].items())
            }
            return Surrogate(
                manifest["model"],
                tuple(manifest["inputs"]),
                {name: float(value) for name, value in manifest["constants"].items()},
                {name: (float(low), float(high)) for name, (low, high) in manifest["ranges"].items()},
                learned,
                int(manifest["rows"]),
                float(manifest["level"]),
                str(manifest["code"]),
            )
    except SurrogateError as error:
        raise SurrogateError(f"{path}: {error}") from error
    except (OSError, zipfile.BadZipFile) as error:
        raise SurrogateError(f"{path}: {error}") from error
    except Exception as error:
        # An untrusted file can be broken in any way; the exceptions of the readers below vary as much.
        raise SurrogateError(f"{path}: this is no surrogate: {error}") from error


def _check(path: str, manifest: dict[str, Any]) -> None:
    if manifest.get("format") != FORMAT:
        raise SurrogateError("this is no surrogate")
    if manifest["version"] != VERSION:
        raise SurrogateError(f"a surrogate of version {manifest['version']}; this program reads {VERSION}")
    if manifest["model"] not in MODELS:
        raise SurrogateError(f"there is no model `{manifest['model']}`; there are {', '.join(MODELS)}")
    if manifest["scikit-learn"].split(".")[:2] != sklearn.__version__.split(".")[:2]:
        raise SurrogateError(
            f"saved with scikit-learn {manifest['scikit-learn']}, and this is {sklearn.__version__}: train it again"
        )


def _learned(archive: zipfile.ZipFile, number: int, about: dict[str, Any]) -> Learned:
    regressors = [_regressor(archive, f"{number}-{member}.skops") for member in range(about["regressors"])]
    offset, scale = float(about["offset"]), float(about["scale"])
    if about["quantile"] is None:
        return Learned(regressors, offset, scale, float("inf"), None, 0.0)
    error = _regressor(archive, f"{number}-error.skops")
    return Learned(regressors, offset, scale, float(about["quantile"]), error, float(about["floor"]))


def _regressor(archive: zipfile.ZipFile, name: str) -> Any:
    data = archive.read(name)
    unknown = set(skops.io.get_untrusted_types(data=data)) - set(TRUSTED)
    if unknown:
        raise SurrogateError(f"types in it that no surrogate has: {', '.join(sorted(unknown))}")
    return skops.io.loads(data, trusted=TRUSTED)
