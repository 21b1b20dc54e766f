"""The time that intervals cover together: busy streams, and the bars of a report.

intervals   0 to 10, 5 to 20, 30 to 40
covered     20 ns before 25, 30 ns in all
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...graph.arrays import Numbers

PointsInTime: TypeAlias = Numbers | NDArray[np.float64]
"""in ns; fractions where a bar is cut into equal parts"""


class Covered:
    """What intervals cover, each instant once."""

    def __init__(self, starts: Numbers, ends: Numbers) -> None:
        """In any order; empty ones count for nothing."""
        present = ends > starts
        order = np.argsort(starts[present], kind="stable")
        starts, ends = starts[present][order], np.maximum.accumulate(ends[present][order])
        first = np.ones(len(starts), np.bool_)
        first[1:] = starts[1:] > ends[:-1]
        self._starts = starts[first]
        self._ends = ends[np.append(np.flatnonzero(first)[1:], len(starts)) - 1] if len(starts) else ends
        self._before = np.concatenate([[0], np.cumsum(self._ends - self._starts)])

    @property
    def spans(self) -> Numbers:
        """The times that are covered: rows of (start, end), in order, none touching another."""
        return np.stack([self._starts, self._ends], axis=1)

    def before(self, instants: PointsInTime) -> PointsInTime:
        """Nanoseconds that are covered before each instant; fractions of a nanosecond count too."""
        at = np.searchsorted(self._starts, instants, "right")
        within = np.minimum(instants, np.concatenate([[0], self._ends])[at]) - np.concatenate([[0], self._starts])[at]
        return np.concatenate([[0], self._before])[at] + np.where(at > 0, within, 0)
