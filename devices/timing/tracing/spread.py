"""Measured times of one op -> its typical time, and between which times four of five runs are."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median_low, quantiles
from typing import NamedTuple

SINGLE_RUN_PERCENT = 10
"""assumed of an op that was measured once: four of five runs are within 10 % of it"""


class Spread(NamedTuple):
    """The median (the lower of two) and the 10th and 90th percentile of measured times."""

    time_ns: int
    low_ns: int
    high_ns: int


def spread_of(times_ns: Iterable[int]) -> Spread:
    """The spread of at least one time."""
    times = sorted(times_ns)
    if len(times) == 1:
        return Spread(
            times[0], times[0] * (100 - SINGLE_RUN_PERCENT) // 100, -(-times[0] * (100 + SINGLE_RUN_PERCENT) // 100)
        )
    tenths = quantiles(times, n=10, method="inclusive")
    middle = median_low(times)
    return Spread(middle, min(middle, int(tenths[0])), max(middle, -int(-tenths[8] // 1)))
