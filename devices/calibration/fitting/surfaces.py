"""From features of kernels and the logarithm of measured / formula at each to a surface over the features.

    residuals 0.12, -0.03, ... of 6,000 kernels     ->  a length for each feature, and at most 300 rows that say as much

The lengths and deviations have the greatest marginal likelihood on some of the rows (`Effort`). Rows that all others
contradict then get a larger variance, as with Student's t with `FREEDOM` degrees. At most `most_rows` rows stay: the
pivots of the covariance, that is each time the row that the kept ones say least about. Their residuals are such that
they predict what the best combination of them makes of all rows (Quinonero-Candela and Rasmussen: A Unifying View of
Sparse Approximate Gaussian Process Regression, JMLR 6, 2005, section 5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor
from scipy.linalg.lapack import dpotri
from scipy.optimize import minimize

from ....graph.arrays import Floats, Numbers
from ...timing.fits.surface import Features, Residuals, SurfaceNumbers, matern, squared_distances

MOST_CANDIDATES = 1200
"""rows among which those that are kept are chosen"""
FREEDOM = 4.0
FEW_ROWS = 20
"""with as many rows, a quantile of their own counts as much as that of all rows"""
ROUNDS = 3
"""times that the variances of outliers are found anew"""
USUAL_LENGTH, LENGTH_SPREAD = np.log(3.0), 1.5
"""the lengths expected before any data: log normal"""


class Effort(NamedTuple):
    """How many rows the likelihood is of, how many are told from each other to find outliers, how many are kept."""

    likelihood_rows: int
    block_rows: int
    most_rows: int


OF_PRODUCTS, OF_KERNELS = Effort(400, 1200, 300), Effort(200, 400, 110)


class FittedSurface(NamedTuple):
    """Numbers as short as a file holds them, and the rows that are kept, with residuals that stand for all rows."""

    kept: Numbers
    residuals: Residuals
    numbers: SurfaceNumbers


class _Posterior(NamedTuple):
    """What is found out of all rows before some are kept: features that vary, scaled points, numbers, variances."""

    lengths: dict[str, float]
    points: Floats
    residuals: Floats
    noise: Floats
    off: Floats
    """by how many deviations each row is off what others say"""
    numbers: SurfaceNumbers

    def quantile_of(self, rows: slice) -> float:
        """The deviations within which 80 % of some of the rows lie; with few of them, near to that of all rows."""
        off = self.off[rows]
        weight = len(off) / (len(off) + FEW_ROWS)
        mixed = weight * np.quantile(off, 0.8) + (1 - weight) * self.numbers.quantile
        return float(f"{mixed:.6g}")

    def scaled(self, features: Features) -> Floats:
        """Points of other rows."""
        return np.stack([features[name] / length for name, length in self.lengths.items()], axis=1)


def fit_surface(features: Features, residuals: Floats, effort: Effort = OF_PRODUCTS) -> FittedSurface:
    """The surface of ln(measured / formula), one a row of the features; deterministic."""
    found = _posterior(features, residuals, effort)
    return _condensed_at(found, found.points, effort.most_rows)


def condensed_for(
    features: Features,
    residuals: Floats,
    asked: Sequence[Features],
    own: Sequence[slice] = (),
    effort: Effort = OF_KERNELS,
) -> list[FittedSurface]:
    """One surface over all rows, condensed for each table of rows that is asked about; `kept` are rows of that table.

    Features that do not vary in a table are left out of its lengths. `own` are by table those of all rows whose errors
    say how wide its intervals are, instead of the errors of all.
    """
    found = _posterior(features, residuals, effort)
    surfaces = []
    for number, table in enumerate(asked):
        fitted = _condensed_at(found, found.scaled(table), effort.most_rows)
        varying = {name: length for name, length in found.lengths.items() if np.ptp(table[name]) > 0}
        quantile = found.quantile_of(own[number]) if own else found.numbers.quantile
        numbers = fitted.numbers._replace(lengths=varying, quantile=quantile)
        surfaces.append(fitted._replace(numbers=numbers))
    return surfaces


def _posterior(features: Features, residuals: Floats, effort: Effort) -> _Posterior:
    columns = {name: column for name, column in features.items() if np.ptp(column) > 0}
    if not columns:  # the same kernel again and again
        columns = dict(list(features.items())[:1])
    points = np.stack(list(columns.values()), axis=1)
    logs = _likeliest(points, residuals, effort.likelihood_rows)
    lengths, deviation, noise = _short(dict(zip(columns, np.exp(logs[:-2]), strict=True)), *np.exp(logs[-2:]))
    scaled = points / np.array(list(lengths.values()))
    outlying, off = _outliers(scaled, residuals, deviation, noise, effort.block_rows)
    numbers = SurfaceNumbers(lengths, deviation, noise, float(f"{np.quantile(off, 0.8):.6g}"))
    return _Posterior(lengths, scaled, residuals, noise**2 * outlying, off, numbers)


def _condensed_at(found: _Posterior, points: Floats, most_rows: int) -> FittedSurface:
    """The surface kept at some of these points."""
    signal = found.numbers.deviation**2
    some = np.sort(np.random.default_rng(0).permutation(len(points))[:MOST_CANDIDATES])
    kept = some[_pivots(points[some], signal, most_rows)]
    among, across = (signal * matern(left, points[kept]) for left in (points[kept], found.points))
    residual, variance = _condensed(among, across, signal, found.residuals, found.noise)
    return FittedSurface(kept, rounded(residual, variance), found.numbers)


def rounded(residual: Floats, variance: Floats) -> Residuals:
    """Residuals and variances as short as a file holds them."""
    return Residuals(
        np.array([float(f"{value:.4f}") for value in residual]), np.array([float(f"{value:.2g}") for value in variance])
    )


def _short(lengths: Mapping[str, float], deviation: float, noise: float) -> tuple[dict[str, float], float, float]:
    """As short as a file holds them."""
    short = {name: float(f"{length:.6g}") for name, length in lengths.items()}
    return short, float(f"{deviation:.6g}"), float(f"{noise:.6g}")


def _likeliest(points: Floats, residuals: Floats, most: int) -> Floats:
    """The logs of the lengths, the surface's deviation and a measurement's, with the greatest likelihood."""
    some = np.random.default_rng(0).permutation(len(residuals))[:most]
    start = np.append(np.log(np.maximum(points.std(axis=0), 0.3)) + 0.5, [np.log(0.1), np.log(0.05)])
    bounds = [(np.log(0.1), np.log(100))] * points.shape[1] + [
        (np.log(0.01), np.log(1)),
        (np.log(0.005), np.log(0.5)),
    ]
    best = minimize(
        _unlikelihood,
        np.clip(start, *np.transpose(bounds)),
        args=(points[some], residuals[some]),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": 40},
    )
    return np.asarray(best.x, dtype=np.float64)


def _unlikelihood(logs: Floats, points: Floats, residuals: Floats) -> tuple[float, Floats]:
    """Minus the log likelihood (Rasmussen and Williams, formula 5.8), lengths' prior included, and its gradient."""
    scaled, signal, noise = points / np.exp(logs[:-2]), np.exp(2 * logs[-2]), np.exp(2 * logs[-1])
    r = np.sqrt(3 * squared_distances(scaled, scaled))
    decay = np.exp(-r)
    covariance = signal * (1 + r) * decay
    factor = cho_factor(covariance + (noise + 1e-8) * np.eye(len(r)), lower=True, check_finite=False)
    inverse = _inverse(factor[0])
    weights = inverse @ residuals
    surplus = np.outer(weights, weights) - inverse
    pull = surplus * (3 * signal) * decay  # times the squared distance in a feature: the change with its length
    by_length = pull.sum(axis=1) @ scaled**2 - np.sum(scaled * (pull @ scaled), axis=0)
    off = (logs[:-2] - USUAL_LENGTH) / LENGTH_SPREAD
    value = residuals @ weights / 2 + np.log(np.diag(factor[0])).sum() + off @ off / 2
    gradient = np.append(off / LENGTH_SPREAD - by_length, [-np.sum(surplus * covariance), -noise * np.trace(surplus)])
    return float(value), gradient


def _inverse(factor: Floats) -> Floats:
    """The inverse of the matrix of a lower Cholesky factor."""
    half, _ = dpotri(factor, lower=1)
    lower = np.tril(half)
    return np.asarray(lower + np.tril(lower, -1).T, dtype=np.float64)


def _outliers(
    points: Floats, residuals: Floats, deviation: float, noise: float, block_rows: int
) -> tuple[Floats, Floats]:
    """By row the factor of its variance, and by how many deviations it is off what all others say."""
    factors, off = np.ones(len(residuals)), np.empty(len(residuals))
    blocks = -(-len(residuals) // block_rows)
    block_of = np.random.default_rng(0).permutation(len(residuals)) % blocks
    for block in range(blocks):
        of = np.flatnonzero(block_of == block)
        covariance = deviation**2 * matern(points[of], points[of])
        factors[of], off[of] = _outliers_of_block(covariance, residuals[of], noise)
    return factors, off


def _outliers_of_block(covariance: Floats, residuals: Floats, noise: float) -> tuple[Floats, Floats]:
    """By row the factor of its variance, and by how many deviations it is off."""
    factors = np.ones(len(residuals))
    for _ in range(ROUNDS):
        off, variance = _left_out(covariance, residuals, noise**2 * factors)
        factors = (FREEDOM + off**2 / variance) / (FREEDOM + 1)
        factors /= np.median(factors)
    off, variance = _left_out(covariance, residuals, noise**2 * factors)
    of_any_row = variance + noise**2 * (1 - factors)  # the variance of a row of which nobody knows yet how far it lies
    return factors, np.abs(off) / np.sqrt(np.maximum(of_any_row, noise**2 / 4))


def _left_out(covariance: Floats, residuals: Floats, noise: Floats) -> tuple[Floats, Floats]:
    """By row how far it is from what the others say, and the variance of that (Rasmussen and Williams, 5.12)."""
    inverse = _inverse(cho_factor(covariance + np.diag(noise), lower=True, check_finite=False)[0])
    variance = 1 / np.diag(inverse)
    return (inverse @ residuals) * variance, variance


def _pivots(points: Floats, signal: float, most: int) -> Numbers:
    """The rows of a pivoted Cholesky factor of the covariance: each the least determined by those before it, in order.

    Only the columns of rows that are kept are made, a tenth of the whole covariance.
    """
    left = np.full(len(points), signal)
    factor = np.zeros((len(left), min(most, len(left))))
    kept: list[int] = []
    for column in range(factor.shape[1]):
        row = int(np.argmax(left))
        if left[row] <= 1e-6 * signal:
            break  # the same kernel again
        covariance = signal * matern(points, points[row : row + 1])[:, 0]
        factor[:, column] = (covariance - factor[:, :column] @ factor[row, :column]) / np.sqrt(left[row])
        left -= factor[:, column] ** 2
        left[row] = 0.0
        kept.append(row)
    return np.array(sorted(kept), dtype=np.int64)


def _condensed(among: Floats, across: Floats, signal: float, residuals: Floats, noise: Floats) -> tuple[Floats, Floats]:
    """For the kept rows, residuals and variances that stand for all rows.

    `among` are covariances of the kept rows, `across` of all rows with them.
    """
    firm = among + 1e-9 * signal * np.eye(len(among))
    shares = np.linalg.solve(firm, across.T).T  # each row as a combination of the kept ones
    lost = np.maximum(signal - np.sum(shares * across, axis=1), 0.0)
    precision = 1 / (noise + lost)
    weights = np.linalg.solve(firm + (across.T * precision) @ across, (across.T * precision) @ residuals)
    variance = 1 / (precision @ shares**2)
    return among @ weights + variance * weights, variance
