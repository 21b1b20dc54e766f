"""Measured curves of collectives, smoothed: for each curve log time and its standard deviation at knots of size.

A curve is (system, kind, ranks), its rows times over sizes:

    mean        alpha + gamma * sqrt(bytes) + beta * bytes, no number negative, least squares of the relative error, of
                the rows of the curve's commonest version of the library
    residual    log time - log mean: a Gaussian process over the log2 of bytes per rank (Matern 5/2), whose covariance
                is shared between kinds, rank counts, and systems by how near the rates of their links are; a library
                changes its protocol at about the same bytes per rank
    version     one shift of log time for each other version, which all its rows share

A row that lies 2.6 standard deviations from what the others say of it counts as so much noisier: single measurements
are off by half (an all-to-all of 1 KiB over 4 H100s, 17.7 us among 7 to 9). Intervals of a system are as wide as it
takes for four of five of its rows, each left out, to lie in theirs. Shares, lengths and noises are constants,
chosen by leaving rows out of the NCCL curves of nine systems, and every second size out of those of 8 A100s.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....graph.arrays import Floats
from ...timing.collectives.measured import Z80

FIRST_LOG2_BYTES, LAST_LOG2_BYTES, PER_OCTAVE = 9, 30, 2
KNOTS = np.arange(FIRST_LOG2_BYTES, LAST_LOG2_BYTES + 0.1, 1 / PER_OCTAVE)
_VARIANCE, _LENGTH = 0.0165, 1.85  # of log time; in octaves
_KINDS = np.array(  # correlations, in the order of MEASURED_KINDS: all-reduce, all-gather, reduce-scatter, all-to-all
    [[1.0, 0.35, 0.35, 0.12], [0.35, 1.0, 0.5, 0.12], [0.35, 0.5, 1.0, 0.12], [0.12, 0.12, 0.12, 1.0]]
)
_DOUBLING = 0.4  # correlation of two rank counts, one twice the other
_RATES = 0.77  # doublings of the rate by which the correlation of two systems falls to 1 / e
_NOISE, _SMALL_NOISE = 0.0003, 0.0014  # variance of log time of a row; more of it where a latency is all
_SMALL_OCTAVES = 3.0  # in which the latter falls to 1 / e
_OUTLIER = 2.6  # standard deviations
_VERSION_VARIANCE = 0.01
_LEAST_FOR_SPREAD = 10  # rows of a system, below which intervals are as the process says
_SPREADS = (0.2, 2.0)
_WIDER = 1.15  # for what a mean knows of the row that is left out
_OUTSIDE_SD = 0.05  # of log time for each octave beyond the sizes of a curve

Curve = tuple[int, int, int]  # system, kind, ranks


class CurveRows(NamedTuple):
    """Rows in columns: numbers of system and kind, log2 of the system's rate, ranks, bytes, ns, number of version."""

    system: NDArray[np.int64]
    kind: NDArray[np.int64]
    log2_rate: Floats
    ranks: NDArray[np.int64]
    size_bytes: Floats
    time_ns: Floats
    version: NDArray[np.int64]

    def take(self, rows: NDArray[np.int64]) -> CurveRows:
        """Some of the rows."""
        system, kind, log2_rate, ranks, size_bytes, time_ns, version = self
        return CurveRows(
            system[rows], kind[rows], log2_rate[rows], ranks[rows], size_bytes[rows], time_ns[rows], version[rows]
        )


class SmoothCurve(NamedTuple):
    """Log time and its standard deviation at `KNOTS`, of the version that most rows of the curve have."""

    log_ns: Floats
    sd: Floats
    version: int


class SmoothCurves(NamedTuple):
    """All curves; and by (other version, version of its curve) how much longer the other takes, in log time."""

    curves: dict[Curve, SmoothCurve]
    shifts: dict[tuple[int, int], float]


def smooth_curves(rows: CurveRows, places: dict[Curve, NDArray[np.int64]]) -> SmoothCurves:
    """The curves of `places`, which has the row numbers of each."""
    from scipy.linalg import cho_factor, cho_solve  # late: predicting does not need it

    base = np.empty(len(rows.system), np.int64)  # by row the version of its curve
    residual, means = np.log(rows.time_ns), {}
    for key, where in places.items():
        base[where] = np.bincount(rows.version[where]).argmax()
        means[key] = _mean_of(rows.take(_of_version(rows, where, int(base[where[0]]))))
        residual[where] -= np.log(_value(means[key], rows.size_bytes[where]))
    is_other = rows.version != base
    covariance = _covariance(rows, rows)
    covariance += _VERSION_VARIANCE * np.outer(is_other, is_other) * (rows.version[:, None] == rows.version)
    base_noise = _noise(np.log2(rows.size_bytes))
    noise, off = _robust_noise(covariance, base_noise, residual)
    factor = cho_factor(covariance + np.diag(noise))
    weights = cho_solve(factor, residual)
    curves = {}
    for key, where in places.items():
        at = _at_knots(rows, where)
        cross = _covariance(at, rows)
        variance = _VARIANCE + _noise(KNOTS) - np.einsum("ij,ji->i", cross, cho_solve(factor, cross.T))
        sizes = np.log2(rows.size_bytes[where])
        outside = np.maximum(KNOTS - sizes.max(), 0.0) + np.maximum(sizes.min() - KNOTS, 0.0)
        alike = (rows.system == rows.system[where[0]]) & (rows.ranks == rows.ranks[where[0]])
        spread = _spread_of(off[alike])
        sd = np.hypot(spread * np.sqrt(np.maximum(variance, _NOISE)), _OUTSIDE_SD * outside)
        log_ns = np.log(_value(means[key], np.exp2(KNOTS))) + cross @ weights
        curves[key] = SmoothCurve(log_ns, sd, int(base[where[0]]))
    pairs = {(int(a), int(b)) for a, b in zip(rows.version[is_other], base[is_other], strict=True)}
    of_version = {a: weights[is_other & (rows.version == a)].sum() for a, _ in pairs}
    return SmoothCurves(curves, {(a, b): float(_VERSION_VARIANCE * of_version[a]) for a, b in sorted(pairs)})


def _at_knots(rows: CurveRows, where: NDArray[np.int64]) -> CurveRows:
    """The points of a curve at the knots; they have no times."""
    same = rows.take(np.full(len(KNOTS), where[0]))
    return same._replace(size_bytes=np.exp2(KNOTS))


def _of_version(rows: CurveRows, where: NDArray[np.int64], version: int) -> NDArray[np.int64]:
    """The rows of a version, all if these are fewer than the numbers of a mean."""
    same = where[rows.version[where] == version]
    return same if len(np.unique(rows.size_bytes[same])) > 2 else where


def _mean_of(rows: CurveRows) -> Floats:
    """alpha, gamma and beta of a curve, none negative."""
    from scipy.optimize import nnls

    terms = _terms(rows.size_bytes) / rows.time_ns[:, None]
    scale = terms.max(0)
    numbers: Floats = nnls(terms / scale, np.ones(len(rows.time_ns)))[0] / scale
    return numbers


def _terms(size_bytes: Floats) -> Floats:
    return np.stack([np.ones_like(size_bytes), np.sqrt(size_bytes), size_bytes], axis=1)


def _value(numbers: Floats, size_bytes: Floats) -> Floats:
    time_ns: Floats = _terms(size_bytes) @ numbers
    return np.maximum(time_ns, 1.0)


def _covariance(a: CurveRows, b: CurveRows) -> Floats:
    """The covariance of residuals at points a and b, without noise."""
    d = np.sqrt(5) / _LENGTH * np.abs(np.log2(a.size_bytes / a.ranks)[:, None] - np.log2(b.size_bytes / b.ranks))
    kinds = _KINDS[a.kind[:, None], b.kind] * _DOUBLING ** np.abs(np.log2(a.ranks)[:, None] - np.log2(b.ranks))
    rates = np.exp(-np.abs(a.log2_rate[:, None] - b.log2_rate) / _RATES)
    total: Floats = _VARIANCE * (1 + d + d * d / 3) * np.exp(-d) * kinds * rates
    return total


def _noise(log2_bytes: Floats) -> Floats:
    small: Floats = _SMALL_NOISE * np.exp(-np.maximum(log2_bytes - FIRST_LOG2_BYTES, 0.0) / _SMALL_OCTAVES)
    return _NOISE + small


def _robust_noise(covariance: Floats, noise: Floats, residual: Floats) -> tuple[Floats, Floats]:
    """The noise of each row, more for rows that lie far from what all others say of them.

    And how far each lies from that, in standard deviations that do not count what was added.
    """
    robust = noise
    for _ in range(3):
        inverse = np.linalg.inv(covariance + np.diag(robust))
        variance = 1 / np.diag(inverse)
        left_out = (inverse @ residual) * variance
        off = np.abs(left_out) / np.sqrt(np.maximum(variance - robust + noise, _NOISE))
        needed = np.square(left_out / _OUTLIER) - variance + robust
        is_outlier = np.abs(left_out) > _OUTLIER * np.sqrt(variance)
        before, robust = robust, np.where(is_outlier, np.maximum(robust, needed), robust)
    return before, off


def _spread_of(off: Floats) -> float:
    """How many times as far as the process says rows of a system lie: so that four of five lie in their intervals."""
    if len(off) < _LEAST_FOR_SPREAD:
        return 1.0
    return float(np.clip(_WIDER * np.quantile(off, 0.8) / Z80, *_SPREADS))
