"""Costs of elementwise functions, where they differ from one operation per element of the output."""

from __future__ import annotations

from collections.abc import Mapping

from ..op_cost import CostContext, bytes_moved, flops, free, moves, output_bytes

free("BroadcastGradientArgs")
moves("Cast", "OnesLike", "ZerosLike")
bytes_moved("OnesLike", "ZerosLike")(output_bytes)


# Operations per output element of functions that hardware computes in steps: what TensorFlow's cost model answers
# for them (2.21, calibration runs: 1.814 ms and 2.016 ms for 2,097,152 elements at 41.6 operations per ns).
_STEPS: Mapping[str, int] = {"Tanh": 36, "Sigmoid": 40}


@flops(*_STEPS)
def stepwise(c: CostContext) -> int:
    """Operations of one element times elements."""
    return _STEPS[c.op] * c.elements_out()


@flops("AddN", "AccumulateNV2")
def add_n(c: CostContext) -> int:
    """One addition per element of every input after the first."""
    return max(1, len(c.inputs) - 1) * c.elements_out()
