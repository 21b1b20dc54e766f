"""Fits the time of collectives to measured curves of any number of systems.

Rows are (system, kind, ranks, bytes, time). For each curve (system, kind, ranks):

    mean        alpha + gamma * sqrt(bytes) + beta * bytes, no number negative, least squares of the relative error
    residual    log time - log mean: a Gaussian process over log2 bytes (Matern 5/2) of two components, a long and a
                short one, whose covariance is shared between kinds, rank counts and systems of one sort of link

Where a curve's own sizes are at most 4x apart, its log time is the average of the process and of a monotone cubic
through its rows (PCHIP): on A100's curves of 8 ranks, every second size left out, the process alone is 4.1 % off, the
cubic alone 4.0 %, a straight line in log size 4.5 %, the average 3.8 %. The cubic is worse where sizes are 16x apart.

The shares and lengths of the process are constants: maximum likelihood on the NCCL curves of nine systems, lengths then
chosen by cross-validation. The process is evaluated at half octaves. Rank counts that were not measured follow from
those that were: the latency's growth per doubling, bus bandwidth B - c / ranks, times what systems that do have that
count show beside the same law.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....errors import InvalidArgumentError
from ....graph.arrays import Floats
from ...timing.collectives.kinds import MEASURED_KINDS, bus_share, kind_named
from ...timing.collectives.measured import CollectiveModel

_RANKS = (2, 4, 8, 16, 32, 64)
_FIRST_LOG2_BYTES, _LAST_LOG2_BYTES, _PER_OCTAVE = 9, 30, 2
_KNOTS = np.arange(_FIRST_LOG2_BYTES, _LAST_LOG2_BYTES + 0.1, 1 / _PER_OCTAVE)
_FEWEST = 3  # rows of a curve: it has as many numbers
_PEER_BYTES_PER_S = 100e9  # bus bandwidth above which ranks have links of their own, not PCIe
_LAW_SD = 0.10  # of log time for each doubling of ranks beyond the measured ones
_KIND_SD = 0.25  # of log time where the kind was not measured


class _Component(NamedTuple):
    """One part of the process: variance, length in octaves, correlation of other kinds, doublings, systems."""

    variance: float
    length: float
    kinds: float
    doubling: float
    systems: float


_COMPONENTS = (_Component(0.011, 4.0, 0.849, 0.808, 0.984), _Component(0.0061, 2.0, 0.412, 0.549, 0.3))
_WIDEST_GAP = 2.0  # octaves between sizes across which a cubic is as good as the process
_CUBIC_SHARE = 0.5
_NOISE = 0.001  # variance of log time of one row
_WIDER = 1.1  # of the standard deviation: 77 % of rows left out lay in the intervals without it


class _Growth(NamedTuple):
    """How a kind grows with ranks where nothing else is known.

    `step` is the increase of the latency from 1 to 2 ranks as a share of the latency, `growth` the factor from one
    doubling's increase to the next (2: linear in ranks, 1: linear in doublings); `latency` and `bandwidth` are those of
    an all-gather = 1.
    """

    step: float
    growth: float
    latency: float
    bandwidth: float


_GROWTH = {
    "all_gather": _Growth(0.25, 2.0, 1.0, 1.0),
    "reduce_scatter": _Growth(0.25, 2.0, 1.0, 1.0),
    "all_reduce": _Growth(0.55, 1.7, 1.2, 1.16),
    "all_to_all": _Growth(0.15, 1.0, 1.15, 0.85),
}
_LOST_SHARE = 0.6  # c / B of the bus bandwidth B - c / ranks where one rank count is known


class CollectiveRows(NamedTuple):
    """Measurements in columns: names of systems and kinds, ranks, bytes as the kind counts them, times in ns."""

    systems: Sequence[str]
    kinds: Sequence[str]
    ranks: NDArray[np.int64]
    size_bytes: NDArray[np.int64]
    time_ns: Floats


class _Points(NamedTuple):
    """Columns of the process: numbers of system, kind and sort of link, log2 ranks, log2 bytes."""

    system: NDArray[np.int64]
    kind: NDArray[np.int64]
    sort: NDArray[np.int64]
    log2_ranks: Floats
    log2_bytes: Floats


_Curve = tuple[int, int, int]  # system, kind, ranks
_Shift = tuple[int, int, bool]  # kind, ranks, whether the law knew two rank counts or one


def fit_collectives(rows: CollectiveRows, *, source: str, date: str) -> dict[str, CollectiveModel]:
    """The model of each system, learnt from the rows of all.

    InvalidArgumentError for an unknown kind, values that are not positive, kinds without curves of their own
    (broadcast, send_recv) and a curve of fewer than three rows.
    """
    names = list(dict.fromkeys(rows.systems))
    curves = _curves(rows, names)
    points = _points(rows, names, _sorts(rows, names))
    means = {key: _mean_of(rows.size_bytes[where], rows.time_ns[where]) for key, where in curves.items()}
    fitted = _at_knots(points, np.log(rows.time_ns), curves, means)
    shared = _shared_shifts(fitted, points)
    models = {}
    for s, name in enumerate(names):
        own = {(k, n): curve for (system, k, n), curve in fitted.items() if system == s}
        log_ns, sd = _complete(own, shared[int(points.sort[list(rows.systems).index(name)])])
        measured = frozenset((MEASURED_KINDS[k], n) for k, n in own)
        count = sum(len(where) for key, where in curves.items() if key[0] == s)
        models[name] = CollectiveModel(
            _RANKS, _FIRST_LOG2_BYTES, _PER_OCTAVE, log_ns, sd, measured, count, source, date
        )
    return models


def _curves(rows: CollectiveRows, names: list[str]) -> dict[_Curve, NDArray[np.int64]]:
    """The row numbers of each curve, in sorted order."""
    if not (np.all(rows.ranks >= 2) and np.all(rows.size_bytes > 0) and np.all(rows.time_ns > 0)):
        raise InvalidArgumentError("collectives: ranks below 2, or a size or time that is not above 0; correct the row")
    numbers: dict[_Curve, list[int]] = {}
    for i, (system, kind) in enumerate(zip(rows.systems, rows.kinds, strict=True)):
        full = kind_named(kind)
        if full not in MEASURED_KINDS:
            raise InvalidArgumentError(f"{kind!r} has no curve of its own; leave its rows out: it follows from others")
        numbers.setdefault((names.index(system), MEASURED_KINDS.index(full), int(rows.ranks[i])), []).append(i)
    for (s, k, n), where in numbers.items():
        if len(set(rows.size_bytes[where].tolist())) < _FEWEST:
            raise InvalidArgumentError(
                f"{names[s]!r}: {MEASURED_KINDS[k]} of {n} ranks has {len(where)} rows, a curve needs {_FEWEST} sizes; "
                "add rows or leave that curve out"
            )
    return {key: np.array(where) for key, where in sorted(numbers.items())}


def _sorts(rows: CollectiveRows, names: list[str]) -> NDArray[np.int64]:
    """For each system whether its ranks have links of their own, by the best bus bandwidth it reached."""
    best = np.zeros(len(names))
    for i, (system, kind) in enumerate(zip(rows.systems, rows.kinds, strict=True)):
        rate = bus_share(kind_named(kind), int(rows.ranks[i])) * rows.size_bytes[i] / rows.time_ns[i] * 1e9
        best[names.index(system)] = max(best[names.index(system)], rate)
    return (best > _PEER_BYTES_PER_S).astype(np.int64)


def _points(rows: CollectiveRows, names: list[str], sorts: NDArray[np.int64]) -> _Points:
    system = np.array([names.index(name) for name in rows.systems])
    kind = np.array([MEASURED_KINDS.index(kind_named(name)) for name in rows.kinds])
    return _Points(system, kind, sorts[system], np.log2(rows.ranks), np.log2(rows.size_bytes))


def _mean_of(size_bytes: NDArray[np.int64], time_ns: Floats) -> Floats:
    """alpha, gamma and beta of a curve, none negative."""
    from scipy.optimize import nnls  # late: predicting does not need it

    terms = _terms(size_bytes) / time_ns[:, None]
    scale = terms.max(0)
    numbers: Floats = nnls(terms / scale, np.ones(len(time_ns)))[0] / scale
    return numbers


def _terms(size_bytes: NDArray[np.int64] | Floats) -> Floats:
    sizes = np.asarray(size_bytes, np.float64)
    return np.stack([np.ones_like(sizes), np.sqrt(sizes), sizes], axis=1)


def _value(numbers: Floats, size_bytes: NDArray[np.int64] | Floats) -> Floats:
    time_ns: Floats = _terms(size_bytes) @ numbers
    return np.maximum(time_ns, 1.0)


def _covariance(a: _Points, b: _Points) -> Floats:
    """The covariance of residuals at points a and b, without noise."""
    kind = a.kind[:, None] == b.kind
    doublings = np.abs(a.log2_ranks[:, None] - b.log2_ranks)
    system = a.system[:, None] == b.system
    sort = a.sort[:, None] == b.sort
    octaves = np.abs(a.log2_bytes[:, None] - b.log2_bytes)
    total = np.zeros_like(octaves)
    for part in _COMPONENTS:
        d = np.sqrt(5) * octaves / part.length
        shares = np.where(kind, 1, part.kinds) * part.doubling**doublings
        shares *= np.where(system, 1, np.where(sort, part.systems, 0))
        total += part.variance * (1 + d + d * d / 3) * np.exp(-d) * shares
    return total


def _at_knots(
    points: _Points, log_time: Floats, curves: dict[_Curve, NDArray[np.int64]], means: dict[_Curve, Floats]
) -> dict[_Curve, tuple[Floats, Floats]]:
    """Log time and standard deviation of every measured curve at the knots."""
    from scipy.linalg import cho_factor, cho_solve

    residual = log_time.copy()
    for key, where in curves.items():
        residual[where] -= np.log(_value(means[key], 2.0 ** points.log2_bytes[where]))
    factor = cho_factor(_covariance(points, points) + _NOISE * np.eye(len(residual)))
    weights = cho_solve(factor, residual)
    prior = sum(part.variance for part in _COMPONENTS) + _NOISE
    count, result = len(_KNOTS), {}
    for (s, k, n), where in curves.items():
        sort = points.sort[where[0]]
        at = _Points(np.full(count, s), np.full(count, k), np.full(count, sort), np.full(count, np.log2(n)), _KNOTS)
        cross = _covariance(at, points)
        variance = prior - np.einsum("ij,ji->i", cross, cho_solve(factor, cross.T))
        log_ns = np.log(_value(means[s, k, n], 2.0**_KNOTS)) + cross @ weights
        cubic = _cubic(points.log2_bytes[where], log_time[where])
        log_ns = np.where(np.isnan(cubic), log_ns, _CUBIC_SHARE * cubic + (1 - _CUBIC_SHARE) * log_ns)
        result[s, k, n] = log_ns, _WIDER * np.sqrt(np.maximum(variance, _NOISE))
    return result


def _cubic(log2_bytes: Floats, log_time: Floats) -> Floats:
    """A monotone cubic through the rows of one curve at the knots, NaN where its sizes are too far apart."""
    from scipy.interpolate import PchipInterpolator

    sizes, row_of = np.unique(log2_bytes, return_inverse=True)
    values = np.bincount(row_of, log_time) / np.bincount(row_of)
    after = np.searchsorted(sizes, _KNOTS)
    inside = (after > 0) & (after < len(sizes)) | np.isin(_KNOTS, sizes)
    at = np.clip(after, 1, len(sizes) - 1)
    is_near = inside & (sizes[at] - sizes[at - 1] <= _WIDEST_GAP)
    return np.where(is_near, PchipInterpolator(sizes, values)(_KNOTS), np.nan)


def _steps(growth: float, ranks: float) -> float:
    """Increases of the latency up to a rank count, the first doubling's = 1."""
    doublings = float(np.log2(ranks))
    return doublings if growth == 1 else (growth**doublings - 1) / (growth - 1)


def _latency(log_ns: Floats) -> float:
    return float(np.exp(log_ns[:5].mean()))  # 512 to 2048 bytes


def _follow(curves: dict[int, Floats], kind: str, ranks: int) -> Floats:
    """The curve of a rank count from those of one or two others: the law of latency and bus bandwidth."""
    law = _GROWTH[kind]
    nearest = sorted(curves, key=lambda n: (abs(np.log2(n / ranks)), n))[:2]
    base = nearest[0]
    latency = {n: _latency(curves[n]) for n in nearest}
    rate = {n: bus_share(kind, n) / float(np.exp(curves[n][-1])) for n in nearest}
    slope, lost = law.step / (1 + law.step * _steps(law.growth, base)) * latency[base], _LOST_SHARE
    if len(nearest) == 2:
        low, high = sorted(nearest)
        slope = (latency[high] - latency[low]) / (_steps(law.growth, high) - _steps(law.growth, low))
        ratio = rate[low] / rate[high]
        lost = (1 - ratio) / (1 / low - ratio / high)
    slope = max(slope, 0.0)
    lost = min(max(lost, -1.0), 0.9)
    own = latency[base] + slope * (_steps(law.growth, ranks) - _steps(law.growth, base))
    own = max(own, 0.5 * latency[base])
    factor = bus_share(kind, ranks) / bus_share(kind, base) * (1 - lost / base) / (1 - lost / ranks)
    return np.log(own + np.maximum(np.exp(curves[base]) - latency[base], 0.0) * factor)


def _shared_shifts(fitted: dict[_Curve, tuple[Floats, Floats]], points: _Points) -> list[dict[_Shift, Floats]]:
    """For each sort of link, what its systems with a rank count show beside the law that follows from fewer ranks."""
    shifts: list[dict[_Shift, Floats]] = []
    for sort in (0, 1):
        seen: dict[_Shift, list[Floats]] = {}
        for (s, k, n), (log_ns, _) in fitted.items():
            fewer = {m: curve for (s2, k2, m), (curve, _) in fitted.items() if (s2, k2) == (s, k) and m < n}
            if fewer and points.sort[points.system == s][0] == sort:
                seen.setdefault((k, n, len(fewer) > 1), []).append(log_ns - _follow(fewer, MEASURED_KINDS[k], n))
        shifts.append({key: np.sum(found, axis=0) / (len(found) + 1.0) for key, found in seen.items()})
    return shifts


def _complete(own: dict[tuple[int, int], tuple[Floats, Floats]], shifts: dict[_Shift, Floats]) -> tuple[Floats, Floats]:
    """All kinds and rank counts of a system: measured curves as they are, the others by the laws."""
    log_ns = np.empty((len(MEASURED_KINDS), len(_RANKS), len(_KNOTS)))
    sd = np.empty_like(log_ns)
    for k, kind in enumerate(MEASURED_KINDS):
        curves = {n: curve for (k2, n), curve in own.items() if k2 == k}
        extra = 0.0 if curves else _KIND_SD
        curves = curves or _from_other_kind(own, kind)
        for r, n in enumerate(_RANKS):
            if n in curves:
                log_ns[k, r], spread = curves[n]
            else:
                nearest = min(curves, key=lambda m: (abs(np.log2(m / n)), m))
                shift = shifts.get((k, n, len(curves) > 1), np.zeros(len(_KNOTS)))
                log_ns[k, r] = _follow({m: c for m, (c, _) in curves.items()}, kind, n) + shift
                spread = np.hypot(curves[nearest][1], _LAW_SD * abs(np.log2(n / nearest)))
            sd[k, r] = np.hypot(spread, extra)
    return log_ns, sd


def _from_other_kind(own: dict[tuple[int, int], tuple[Floats, Floats]], kind: str) -> dict[int, tuple[Floats, Floats]]:
    """Curves of a kind that was not measured, from the first kind that was."""
    other = min(k for k, _ in own)
    a, b = _GROWTH[MEASURED_KINDS[other]], _GROWTH[kind]
    curves = {}
    for n, (log_ns, sd) in ((n, curve) for (k, n), curve in own.items() if k == other):
        latency = _latency(log_ns)
        rest = np.maximum(np.exp(log_ns) - latency, 0.0) * a.bandwidth / b.bandwidth
        rest *= bus_share(kind, n) / bus_share(MEASURED_KINDS[other], n)
        curves[n] = np.log(latency * b.latency / a.latency + rest), sd
    return curves
