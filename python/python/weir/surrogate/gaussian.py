"""The mean of a Gaussian process for many settings: the computation of scikit-learn, in blocks that stay in
the cache, and without the matrices of the kernel's parts."""

from __future__ import annotations

from typing import Any

import numpy as np

#: Settings per block: their kernel with some hundreds of rows has a few megabytes.
BLOCK = 1024


def mean(process: Any, features: np.ndarray) -> np.ndarray:
    """The mean of a process whose kernel is a constant times a Matérn kernel with nu = 2.5, plus noise
    (Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006, equations 2.25 and 4.17)."""
    product = process.kernel_.k1
    scale = product.k2.length_scale
    weights = product.k1.constant_value * process.alpha_
    known = process.X_train_ / scale
    squares = (known**2).sum(axis=1)
    means = np.empty(len(features))
    for begin in range(0, len(features), BLOCK):
        block = features[begin : begin + BLOCK] / scale
        distance = (block**2).sum(axis=1)[:, None] + squares - 2 * block @ known.T
        np.maximum(distance, 0, out=distance)
        distance *= 5
        root = np.sqrt(distance)
        distance /= 3
        distance += root
        distance += 1
        np.negative(root, out=root)
        np.exp(root, out=root)
        distance *= root
        means[begin : begin + BLOCK] = distance @ weights
    return means
