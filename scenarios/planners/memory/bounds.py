"""Between which bounds four of five measured peaks lie, in columns.

States follow from the configuration and are sure. Of what comes and goes the B200 measurements of Megatron-LM say how
far off it is. What they do not have (other schedules than 1f1b, recomputation, zero 2 and 3, attention that is not
fused) adds to that by how much of it is there.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ....graph.arrays import Floats
from ..configurations import RECOMPUTATIONS, SCHEDULES, Configurations
from ..step import PlannedStep

_FIXED_BYTES = 0.05 * 2**30
"""workspaces and small tensors that are not counted"""
_MEASURED = 0.01
"""of activations, temporaries and buffers"""
_UNMEASURED = 0.06
"""of activations, for each way of keeping them that no measurement has"""
_UNMEASURED_TEMPORARIES = 0.3


def bounds(
    step: PlannedStep, configurations: Configurations, by_category: Mapping[str, Floats], allocated: Floats
) -> tuple[Floats, Floats]:
    """Low and high of the allocated bytes."""
    activations, temporaries = by_category["activations"], by_category["temporaries"]
    recomputes = configurations.recompute != RECOMPUTATIONS.index("none")
    ways = (configurations.schedule != SCHEDULES.index("1f1b")).astype(np.float64) + recomputes
    ways = ways + (not step.fused_attention) + (configurations.precision == "fp8")
    gathers = recomputes | (configurations.zero >= 2) | (not step.fused_loss)
    measured = _MEASURED * (activations + temporaries + by_category["communication"])
    unmeasured = _UNMEASURED * ways * activations + _UNMEASURED_TEMPORARIES * gathers * temporaries
    spread = _FIXED_BYTES + measured + unmeasured
    return np.maximum(allocated - spread, 0.0), allocated + spread
