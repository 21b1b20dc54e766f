"""From bytes and times of memory-bound ops to numbers: time = bytes / (bandwidth * efficiency) + constant.

    1 MiB in 30.2 us, 64 MiB in 42.6 us, ... on 8 TB/s     ->  efficiency 67 %, constant 30 us, spread 20 %

The fit is in log time with a robust loss (soft L1), so that small and large ops weigh the same and a few outliers do
not matter. The spread of the residuals is the interval.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....errors import InvalidArgumentError
from ...timing.fits.memory_bound import MemoryBoundModel, MemoryNumbers


class SearchedNumbers(NamedTuple):
    """What is searched of `MemoryNumbers`; the constant up to the longest time measured."""

    efficiency: float
    constant_ns: float


BOUNDS = SearchedNumbers(0.01, 0.5), SearchedNumbers(1.0, float("inf"))
_LEAST_SPREAD = 0.05
_HALF_OF_80 = 1.2816  # standard deviations to the 90 % quantile


def fit_memory_bound(
    size_bytes: NDArray[Any],
    time_ns: NDArray[Any],
    bandwidth_bytes_per_s: int,
    *,
    source: str,
    date: str,
) -> MemoryBoundModel:  # Any: integers or floats of every width
    """The model of one kind of op; InvalidArgumentError for fewer than three rows and for times not above 0."""
    from scipy.optimize import least_squares  # late: slow to import, and only fitting needs it

    moved, times = np.asarray(size_bytes, np.float64), np.asarray(time_ns, np.float64)
    if len(times) < 3:
        raise InvalidArgumentError(f"{len(times)} rows of memory-bound ops fit no two numbers; give at least 3")
    if times.min() <= 0 or moved.min() < 0:
        raise InvalidArgumentError("times of memory-bound ops must be above 0, bytes not negative; leave such rows out")
    full_ns = moved * 1e9 / bandwidth_bytes_per_s

    def residuals(x: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.log(full_ns / np.exp(x[0]) + np.exp(x[1])) - np.log(times))

    start = np.array([np.log(0.7), np.log(max(1.0, times.min() / 2))])
    bounds = (np.log(BOUNDS[0]), [np.log(BOUNDS[1].efficiency), np.log(max(2.0, times.max()))])
    best = least_squares(residuals, np.clip(start, *bounds), bounds=bounds, loss="soft_l1", f_scale=0.1)
    left = np.abs(residuals(best.x))
    robust = 1.4826 * float(np.median(left))  # standard deviation, from the median of absolute residuals
    spread = min(1.0, max(_LEAST_SPREAD, _HALF_OF_80 * robust * np.sqrt(len(times) / (len(times) - 2))))
    numbers = MemoryNumbers(bandwidth_bytes_per_s, float(np.exp(best.x[0])), float(np.exp(best.x[1])), float(spread))
    return MemoryBoundModel({"default": numbers}, source, date)
