"""What a fitted model says: times with their 80 % intervals, in columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..costs.source import Provenance

Floats = NDArray[np.float64]


class Prediction(NamedTuple):
    """Times of several runs in ns, not rounded, the bounds between which four of five runs fall, and their source."""

    time_ns: Floats
    low_ns: Floats
    high_ns: Floats
    provenance: Provenance = "fitted"
