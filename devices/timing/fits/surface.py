"""A surface over the sizes of products: how far the formula was off at measured products, in log time.

A Gaussian process with mean 0 and the Matern 3/2 covariance s^2 (1 + r) exp(-r), r = sqrt(3) * the distance of two
products with a length for each feature (Rasmussen and Williams: Gaussian Processes for Machine Learning, 2006, chapter
4). Near measured products it says what they said, far from them 0, with the spread that the formula alone has.

A file holds at most some hundred rows (`SurfaceRows`): a product, its residual, and the variance of that residual. They
stand for all rows of a fit, so a residual is one that gives the fit's surface back, not one that was measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from attrs import field, frozen

from ....graph.arrays import Floats, Numbers

LAYOUTS = ("TN", "NN", "NT")
WASTE_TILES = ((256, 128), (128, 128), (64, 64))
"""tiles whose last wave counts, in rows and columns"""
MOST_ALIGNMENT = 4
"""powers of two by which all three sizes divide, beyond which no kernel cares"""


def features(m: Numbers, n: Numbers, k: Numbers, layout: tuple[str, ...] | None, sm_count: int) -> dict[str, Floats]:
    """What residuals may depend on, a column each: log2 sizes, share of idle SMs, alignment, layout."""
    columns: dict[str, Floats] = {
        f"log2 {name}": np.log2(a.astype(np.float64)) for name, a in (("m", m), ("n", n), ("k", k))
    }
    for rows, cols in WASTE_TILES:
        waves = np.ceil(m / rows) * np.ceil(n / cols) / sm_count
        columns[f"idle {rows}x{cols}"] = np.minimum(np.log2(np.ceil(waves) / waves), 3.0)
    powers = [((m | n | k) % (1 << power) == 0).astype(np.float64) for power in range(1, MOST_ALIGNMENT + 1)]
    columns["alignment"] = np.asarray(np.sum(powers, axis=0))
    for name in LAYOUTS if layout is not None else ():
        columns[f"layout {name}"] = np.array([float(given == name) for given in layout or ()])
    return columns


class SurfaceRows(NamedTuple):
    """Products with the formula's residual there, ln(measured / formula), and its variance."""

    m: Numbers
    n: Numbers
    k: Numbers
    layout: tuple[str, ...] | None
    residual: Floats
    variance: Floats


@frozen(eq=False)
class Surface:
    """The rows, a length for each feature that varied, the standard deviation of the surface and of one measurement.

    `quantile` times the standard deviation of a prediction is half of its 80 % interval.
    """

    rows: SurfaceRows
    lengths: Mapping[str, float]
    deviation: float
    noise: float
    quantile: float
    sm_count: int
    _points: Floats = field(init=False)
    _weights: Floats = field(init=False)
    _whitening: Floats = field(init=False)

    def __attrs_post_init__(self) -> None:
        rows = self.rows
        points = self._scaled(rows.m, rows.n, rows.k, rows.layout)
        covariance = self.deviation**2 * matern(points, points)
        covariance[np.diag_indices(len(points))] += rows.variance
        whitening = np.linalg.inv(np.linalg.cholesky(covariance))
        object.__setattr__(self, "_points", points)
        object.__setattr__(self, "_weights", whitening.T @ (whitening @ rows.residual))
        object.__setattr__(self, "_whitening", whitening)

    def _scaled(self, m: Numbers, n: Numbers, k: Numbers, layout: tuple[str, ...] | None) -> Floats:
        columns = features(m, n, k, layout, self.sm_count)
        none = np.zeros(len(m))
        return np.stack([columns.get(name, none) / length for name, length in self.lengths.items()], axis=1)

    def at(self, m: Numbers, n: Numbers, k: Numbers, layout: tuple[str, ...] | None) -> tuple[Floats, Floats]:
        """The residual's mean and standard deviation, that of one measurement included, by product."""
        near = self.deviation**2 * matern(self._scaled(m, n, k, layout), self._points)
        known = np.sum((near @ self._whitening.T) ** 2, axis=1)
        variance = np.maximum(self.deviation**2 - known, 0.0) + self.noise**2
        return near @ self._weights, np.sqrt(variance)

    def nearest(self, m: int, n: int, k: int, count: int) -> list[int]:
        """The numbers of the rows nearest to a product, the nearest first."""
        here = self._scaled(np.array([m]), np.array([n]), np.array([k]), None)
        return [int(i) for i in np.argsort(squared_distances(here, self._points)[0], kind="stable")[:count]]


def squared_distances(left: Floats, right: Floats) -> Floats:
    """Of each row of one table of points to each of another."""
    squares = np.sum(left**2, axis=1)[:, None] + np.sum(right**2, axis=1)[None, :]
    return np.asarray(np.maximum(squares - 2 * left @ right.T, 0.0), dtype=np.float64)


def matern(left: Floats, right: Floats) -> Floats:
    """The Matern 3/2 correlation of points in units of their lengths."""
    r = np.sqrt(3 * squared_distances(left, right))
    return np.asarray((1 + r) * np.exp(-r), dtype=np.float64)
