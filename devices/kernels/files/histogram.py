"""Histograms of summaries: how many values fall below each of TensorFlow's limits, which grow by a tenth each.

The limits are 1e-12 * 1.1**n up to 1e20, their negatives, 0, and the greatest float at both ends; a value belongs to
the first limit above it. Neighbouring empty buckets become one:

    1, 2, 3 -> below 0.917: 0, 1.009: 1, 1.966: 0, 2.163: 1, 2.879: 0, 3.167: 1, 1.8e308: 0
"""

from __future__ import annotations

from functools import cache

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.dtypes import Array
from ....graph.ops.files.summaries import Histogram

_GREATEST = float(np.finfo(np.float64).max)


@cache
def _limits() -> Array:
    """All limits, ascending."""
    positive, limit = [], 1e-12
    while limit < 1e20:
        positive.append(limit)
        limit *= 1.1  # not 1e-12 * 1.1**n, which rounds differently
    positive.append(_GREATEST)
    return np.array([*(-x for x in reversed(positive)), 0.0, *positive])


def histogram_of(values: Array, name: str, infinite: str) -> Histogram:
    """The histogram of real numbers of any shape and type.

    InvalidArgumentError for a NaN and for an infinity; its text ends with `name`, that of an infinity begins with
    `infinite`.
    """
    numbers = values.reshape(-1).astype(np.float64)
    _check_finite(numbers, name, infinite)
    limits = _limits()
    places = np.minimum(np.searchsorted(limits, numbers, "right"), len(limits) - 1)
    counts = np.bincount(places, minlength=len(limits))
    kept = _ends_of_runs(counts > 0)
    smallest, greatest = _extremes(numbers)
    return Histogram(
        smallest,
        greatest,
        float(numbers.size),
        _added_in_order(numbers),
        _added_in_order(numbers * numbers),
        limits[kept].tolist(),
        counts[kept].astype(np.float64).tolist(),
    )


def _check_finite(numbers: Array, name: str, infinite: str) -> None:
    broken = np.flatnonzero(~np.isfinite(numbers))
    if broken.size:
        what = "Nan in summary histogram" if np.isnan(numbers[broken[0]]) else infinite
        raise InvalidArgumentError(f"{what} for: {name}")


def _ends_of_runs(filled: Array) -> Array:
    """Where a filled bucket is, and where a run of empty ones ends."""
    ends: Array = filled | np.append(filled[1:], True)
    return ends


def _extremes(numbers: Array) -> tuple[float, float]:
    """The first of the smallest and of the greatest numbers (0 and -0 are equal); of none the ends, exchanged."""
    if not numbers.size:
        return _GREATEST, -_GREATEST
    return float(numbers[numbers.argmin()]), float(numbers[numbers.argmax()])


def _added_in_order(numbers: Array) -> float:
    """The sum, one after the other from 0 on: numpy's own adds pairs, which rounds differently."""
    return float(np.add.accumulate(numbers)[-1]) + 0.0 if numbers.size else 0.0
