"""What a fitted model says: times with their 80 % intervals, in columns."""

from __future__ import annotations

from math import ceil, floor
from typing import NamedTuple

from ....graph.arrays import Floats
from ..costs.source import OpCost, Provenance


class Prediction(NamedTuple):
    """Times of several runs in ns, not rounded, the bounds between which four of five runs fall, and their source."""

    time_ns: Floats
    low_ns: Floats
    high_ns: Floats
    provenance: Provenance = "fitted"

    def first_cost(self, flops: Floats, moved: Floats) -> OpCost:
        """The first run as the cost of an op, in whole nanoseconds; operations and bytes are those of each run."""
        time_ns, low_ns, high_ns = (float(column[0]) for column in (self.time_ns, self.low_ns, self.high_ns))
        return OpCost(round(time_ns), int(flops[0]), int(moved[0]), self.provenance, floor(low_ns), ceil(high_ns))
