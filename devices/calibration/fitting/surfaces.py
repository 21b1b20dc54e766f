"""From products and the logarithm of measured / formula at each to a surface over their sizes.

    residuals 0.12, -0.03, ... of 6,000 products     ->  a `Surface`: a length for each feature, at most 300 rows

The lengths and deviations have the greatest marginal likelihood on at most `LIKELIHOOD_ROWS` rows. Rows that all others
contradict then get a larger variance, as with Student's t with `FREEDOM` degrees. At most `MOST_ROWS` rows stay: the
pivots of the covariance, that is each time the row that the kept ones say least about. Their residuals are such that
they predict what the best combination of them makes of all rows (Quinonero-Candela and Rasmussen: A Unifying View of
Sparse Approximate Gaussian Process Regression, JMLR 6, 2005, section 5).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from ....graph.arrays import Floats, Numbers
from ...timing.fits.products import Products
from ...timing.fits.surface import Surface, SurfaceRows, features, matern, squared_distances

LIKELIHOOD_ROWS = 400
MOST_ROWS = 300
FREEDOM = 4.0
ROUNDS = 3
"""times that the variances of outliers are found anew"""
USUAL_LENGTH, LENGTH_SPREAD = np.log(3.0), 1.5
"""the lengths expected before any data: log normal"""


def fit_surface(products: Products, residuals: Floats, sm_count: int) -> Surface:
    """The surface of ln(measured / formula), one a product; deterministic."""
    columns = {
        name: column
        for name, column in features(products.m, products.n, products.k, products.layout, sm_count).items()
        if np.ptp(column) > 0
    }
    points = np.stack(list(columns.values()), axis=1)
    logs = _likeliest(points, residuals)
    scaled, deviation, noise = points / np.exp(logs[:-2]), float(np.exp(logs[-2])), float(np.exp(logs[-1]))
    covariance = deviation**2 * matern(scaled, scaled)
    outlying, quantile = _outliers(covariance, residuals, noise)
    kept = _pivots(covariance, MOST_ROWS)
    wanted, variance = _condensed(covariance, kept, residuals, noise**2 * outlying)
    lengths = dict(zip(columns, np.exp(logs[:-2]).tolist(), strict=True))
    layout = None if products.layout is None else tuple(products.layout[i] for i in kept)
    rows = SurfaceRows(products.m[kept], products.n[kept], products.k[kept], layout, wanted, variance)
    return rounded(rows, lengths, deviation, noise, quantile, sm_count)


def rounded(
    rows: SurfaceRows, lengths: Mapping[str, float], deviation: float, noise: float, quantile: float, sm_count: int
) -> Surface:
    """A surface of numbers as short as a file holds them."""
    short = {name: float(f"{length:.6g}") for name, length in lengths.items()}
    residual = np.array([float(f"{value:.4f}") for value in rows.residual])
    variance = np.array([float(f"{value:.2g}") for value in rows.variance])
    short_rows = rows._replace(residual=residual, variance=variance)
    return Surface(
        short_rows, short, float(f"{deviation:.6g}"), float(f"{noise:.6g}"), float(f"{quantile:.6g}"), sm_count
    )


def _likeliest(points: Floats, residuals: Floats) -> Floats:
    """The logs of the lengths, the surface's deviation and a measurement's, with the greatest likelihood."""
    some = np.random.default_rng(0).permutation(len(residuals))[:LIKELIHOOD_ROWS]
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
    inverse = cho_solve(factor, np.eye(len(r)), check_finite=False)
    weights = inverse @ residuals
    surplus = np.outer(weights, weights) - inverse
    pull = surplus * (3 * signal) * decay  # times the squared distance in a feature: the change with its length
    by_length = pull.sum(axis=1) @ scaled**2 - np.sum(scaled * (pull @ scaled), axis=0)
    off = (logs[:-2] - USUAL_LENGTH) / LENGTH_SPREAD
    value = residuals @ weights / 2 + np.log(np.diag(factor[0])).sum() + off @ off / 2
    gradient = np.append(off / LENGTH_SPREAD - by_length, [-np.sum(surplus * covariance), -noise * np.trace(surplus)])
    return float(value), gradient


def _outliers(covariance: Floats, residuals: Floats, noise: float) -> tuple[Floats, float]:
    """By row the factor of its variance; and the deviations within which 80 % of rows are found by all the others."""
    factors = np.ones(len(residuals))
    for _ in range(ROUNDS):
        off, variance = _left_out(covariance, residuals, noise**2 * factors)
        factors = (FREEDOM + off**2 / variance) / (FREEDOM + 1)
        factors /= np.median(factors)
    off, variance = _left_out(covariance, residuals, noise**2 * factors)
    of_any_row = variance + noise**2 * (1 - factors)  # the variance of a row of which nobody knows yet how far it lies
    return factors, float(np.quantile(np.abs(off) / np.sqrt(np.maximum(of_any_row, noise**2 / 4)), 0.8))


def _left_out(covariance: Floats, residuals: Floats, noise: Floats) -> tuple[Floats, Floats]:
    """By row how far it is from what the others say, and the variance of that (Rasmussen and Williams, 5.12)."""
    inverse = np.linalg.inv(covariance + np.diag(noise))
    variance = 1 / np.diag(inverse)
    return (inverse @ residuals) * variance, variance


def _pivots(covariance: Floats, most: int) -> Numbers:
    """The rows of a pivoted Cholesky factor: each the least determined by those before it, in order of rows."""
    left = np.diag(covariance).copy()
    factor = np.zeros((len(left), min(most, len(left))))
    kept: list[int] = []
    for column in range(factor.shape[1]):
        row = int(np.argmax(left))
        if left[row] <= 1e-6 * covariance[0, 0]:
            break  # the same product again
        factor[:, column] = (covariance[:, row] - factor[:, :column] @ factor[row, :column]) / np.sqrt(left[row])
        left -= factor[:, column] ** 2
        left[row] = 0.0
        kept.append(row)
    return np.array(sorted(kept), dtype=np.int64)


def _condensed(covariance: Floats, kept: Numbers, residuals: Floats, noise: Floats) -> tuple[Floats, Floats]:
    """For the kept rows, residuals and variances that stand for all rows."""
    among = covariance[np.ix_(kept, kept)] + 1e-9 * covariance[0, 0] * np.eye(len(kept))
    across = covariance[:, kept]
    shares = np.linalg.solve(among, across.T).T  # each row as a combination of the kept ones
    lost = np.maximum(np.diag(covariance) - np.sum(shares * across, axis=1), 0.0)
    precision = 1 / (noise + lost)
    weights = np.linalg.solve(among + (across.T * precision) @ across, (across.T * precision) @ residuals)
    variance = 1 / (precision @ shares**2)
    return covariance[np.ix_(kept, kept)] @ weights + variance * weights, variance
