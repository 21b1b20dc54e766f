"""Bytes of what outlives a step, of parameters on a rank: values, gradients, and the optimizer's masters and moments.

Adam in mixed precision: 2 bytes of values, `gradient_bytes` of gradients, 4 + 4 + 4 of the master and two moments. In
float32 the values are the masters. With zero 1 the optimizer's are shared out, with 2 gradients too, with 3 values too:
over the ranks of `zero_group` and all of cp, as Megatron's distributed optimizer and FSDP have it; of routed experts
over the ranks that have the same ones, which are those of dp / ep, cp and tp. Gradients of several micro-batches are
added up whole and reduced once a step, whatever zero is, as `times.gradients` takes it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ....graph.arrays import Flags, Floats
from ..configurations import Configurations
from ..sizes.shares import RankShares, shards_of
from ..step import PlannedStep

_OPTIMIZER = {"float64": 16, "float32": 8}
"""bytes of moments where values are masters; else 12"""
_FLOAT8_COPIES = 2
"""bytes of what fp8 products read, by rows and by columns"""


class StateBytes(NamedTuple):
    """Columns of bytes."""

    parameters: Floats
    gradients: Floats
    optimizer: Floats
    cast_gradients: Floats
    """float32 copies of 16-bit gradients, while the optimizer runs"""


def state_bytes(
    step: PlannedStep, shares: RankShares, configurations: Configurations, whole: Floats, routed: Floats
) -> StateBytes:
    """Of `whole` parameters that all ranks of dp have, and `routed` of experts, [..., rows]."""
    shards = shards_of(shares, configurations)

    def spread(shared: Flags) -> Floats:
        """Parameters, shared out in some rows."""
        return np.asarray(whole / np.where(shared, shards.whole, 1) + routed / np.where(shared, shards.routed, 1))

    zero = configurations.zero
    parameters = spread(zero >= 3) * float(shares.width + (_FLOAT8_COPIES if configurations.precision == "fp8" else 0))
    if not step.trains:
        nothing = np.zeros_like(parameters)
        return StateBytes(parameters, nothing, nothing, nothing)
    gradients = float(max(step.gradient_bytes, shares.width if shares.width > 2 else 0))
    return StateBytes(
        parameters,
        gradients=spread(reduces_at_once(configurations)) * gradients,
        optimizer=spread(zero >= 1) * float(_OPTIMIZER.get(configurations.precision, 12)),
        cast_gradients=spread(zero >= 1) * (4.0 if gradients < 4 else 0.0),
    )


def reduces_at_once(configurations: Configurations) -> Flags:
    """Whether a layer's gradients are scattered as soon as they are there, so that no rank has all of them."""
    return np.asarray((configurations.zero >= 2) & (configurations.microbatches == 1))
