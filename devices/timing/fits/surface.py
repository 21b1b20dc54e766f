"""A surface over features of kernels: how far a formula was off at measured ones, in log time.

A Gaussian process with mean 0 and the Matern 3/2 covariance s^2 (1 + r) exp(-r), r = sqrt(3) * the distance of two
kernels with a length for each feature (Rasmussen and Williams: Gaussian Processes for Machine Learning, 2006, chapter
4). Near measured kernels it says what they said, far from them 0, with the spread that the formula alone has.

A file holds at most some hundred rows: features of a kernel, its residual, and the variance of that residual. They
stand for all rows of a fit, so a residual is one that gives the fit's surface back, not one that was measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from attrs import field, frozen

from ....graph.arrays import Floats, Numbers

Features = Mapping[str, Floats]
"""by name a column, a row a kernel; sizes as their log2"""


class SurfaceNumbers(NamedTuple):
    """A length for each feature that varied, the standard deviations of the surface and of one measurement.

    `quantile` times the standard deviation of a prediction is half of its 80 % interval.
    """

    lengths: Mapping[str, float]
    deviation: float
    noise: float
    quantile: float


class Residuals(NamedTuple):
    """ln(measured / formula) of each row of a surface, and its variance."""

    residual: Floats
    variance: Floats


@frozen(eq=False)
class Surface:
    """Rows with their features and residuals, and the numbers that say how far a row speaks."""

    features: Features
    rows: Residuals
    numbers: SurfaceNumbers
    _points: Floats = field(init=False)
    _weights: Floats = field(init=False)
    _whitening: Floats = field(init=False)

    def __attrs_post_init__(self) -> None:
        points = self._scaled(self.features)
        covariance = self.numbers.deviation**2 * matern(points, points)
        covariance[np.diag_indices(len(points))] += self.rows.variance
        whitening = np.linalg.inv(np.linalg.cholesky(covariance))
        object.__setattr__(self, "_points", points)
        object.__setattr__(self, "_weights", whitening.T @ (whitening @ self.rows.residual))
        object.__setattr__(self, "_whitening", whitening)

    def _scaled(self, features: Features) -> Floats:
        none = np.zeros(len(next(iter(features.values()))))
        return np.stack([features.get(name, none) / length for name, length in self.numbers.lengths.items()], axis=1)

    def at(self, features: Features) -> tuple[Floats, Floats]:
        """The residual's mean and standard deviation, that of one measurement included, by kernel."""
        near = self.numbers.deviation**2 * matern(self._scaled(features), self._points)
        known = np.sum((near @ self._whitening.T) ** 2, axis=1)
        variance = np.maximum(self.numbers.deviation**2 - known, 0.0) + self.numbers.noise**2
        return near @ self._weights, np.sqrt(variance)

    def nearest(self, features: Features, count: int) -> Numbers:
        """The numbers of the rows nearest to the first kernel, the nearest first."""
        distances = squared_distances(self._scaled(features)[:1], self._points)[0]
        return np.argsort(distances, kind="stable")[:count]


def squared_distances(left: Floats, right: Floats) -> Floats:
    """Of each row of one table of points to each of another."""
    squares = np.sum(left**2, axis=1)[:, None] + np.sum(right**2, axis=1)[None, :]
    return np.asarray(np.maximum(squares - 2 * left @ right.T, 0.0), dtype=np.float64)


def matern(left: Floats, right: Floats) -> Floats:
    """The Matern 3/2 correlation of points in units of their lengths."""
    r = np.sqrt(3 * squared_distances(left, right))
    return np.asarray((1 + r) * np.exp(-r), dtype=np.float64)
