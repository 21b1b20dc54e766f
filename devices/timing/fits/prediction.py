"""What a fitted model says: times with their 80 % intervals, in columns."""

from __future__ import annotations

from typing import NamedTuple

from ....graph.arrays import Floats
from ..costs.source import Provenance


class Prediction(NamedTuple):
    """Times of several runs in ns, not rounded, the bounds between which four of five runs fall, and their source."""

    time_ns: Floats
    low_ns: Floats
    high_ns: Floats
    provenance: Provenance = "fitted"
