"""Costs of elementwise functions, where they differ from one operation per element of the output."""

from __future__ import annotations

from collections.abc import Mapping

from ..kernel_run import streams_as
from ..op_cost import CostContext, bytes_moved, elements_read, elementwise, flops, free, moves, output_bytes

free("BroadcastGradientArgs")
streams_as("mul", "Mul", "MulNoNan")
streams_as("div", "Div", "RealDiv", "DivNoNan", "Xdivy")
streams_as("pow", "Pow")
streams_as("tanh", "Tanh", "Sigmoid", "Exp", "Erf")
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


elementwise("Complex", "PopulationCount")  # the others say in their records that they work in place
moves("Imag", "Real", "_HostCast")
flops("CheckNumericsV2")(elements_read)


@flops("Angle", "ComplexAbs")
def of_two_parts(c: CostContext) -> int:
    """Two squares, a sum and a root, or a quotient and its arc tangent."""
    return 4 * c.elements_out()


@flops("Cross")
def cross(c: CostContext) -> int:
    """Two products and a difference per element."""
    return 3 * c.elements_out()


@flops("Bucketize")
def bucketize(c: CostContext) -> int:
    """A binary search among the boundaries per element."""
    return c.elements_in() * max(len(c.attrs["boundaries"]), 1).bit_length()
