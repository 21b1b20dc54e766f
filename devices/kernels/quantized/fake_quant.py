"""Fake quantisation: floats rounded to a grid of 2 ** num_bits points, as training for quantised inference does.

The range is moved slightly so that zero is a point of the grid (Jacob et al., 2018, section 3).
"""

from __future__ import annotations

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..checks import require
from ..registry import Construction, Kernel, kernel

NudgedRange = tuple[Array, Array, Array, Array]


def _steps(node: Construction) -> tuple[np.float32, np.float32]:
    """The first and last number of the grid's points."""
    bits = int(node.attrs["num_bits"])
    require(2 <= bits <= 16, "num_bits must be between 2 and 16, inclusive")
    return np.float32(1 if node.attrs["narrow_range"] else 0), np.float32(2**bits - 1)


def _nudged(low: Array, high: Array, first: np.float32, last: np.float32) -> NudgedRange:
    """The range moved so that zero is on the grid: its ends, the step between points, the number of steps per unit."""
    step = (high - low) / (last - first)
    zero_point = first - low / step
    rounded = np.where(zero_point < first, first, np.where(zero_point > last, last, np.floor(zero_point + 0.5)))
    rounded = rounded.astype(np.float32)
    return (first - rounded) * step, (last - rounded) * step, step, (last - first) / (high - low)


def _quantised(x: Array, nudged: NudgedRange) -> Array:
    low, high, step, per_unit = nudged
    zero = np.floor(-low * per_unit + np.float32(0.5))
    clamped = np.minimum(np.maximum(x, low), high)
    result: Array = np.floor((clamped - low) * per_unit - zero + np.float32(0.5)) * step
    return result


@kernel("FakeQuantWithMinMaxArgs")
def fake_quant_args(node: Construction) -> Kernel:
    """Quantisation to the range that the attrs give."""
    nudged = _range_of_attrs(node)
    return lambda x: _quantised(x, nudged)


@kernel("FakeQuantWithMinMaxArgsGradient")
def fake_quant_args_gradient(node: Construction) -> Kernel:
    """The gradient where the input was inside the range; zero elsewhere."""
    low, high, *_ = _range_of_attrs(node)
    zero = np.float32(0)

    def gradient(gradients: Array, x: Array) -> Array:
        if gradients.shape != x.shape:
            raise InvalidArgumentError(
                f"Inputs to operation {node.name} of type {node.op} must have the same size and shape.  "
                f"Input 0: {shape_text(gradients.shape)} != input 1: {shape_text(x.shape)}"
            )
        return np.where((x >= low) & (x <= high), gradients, zero)

    return gradient


def _range_of_attrs(node: Construction) -> NudgedRange:
    low, high = np.float32(node.attrs["min"]), np.float32(node.attrs["max"])
    if not low < high:
        raise InvalidArgumentError(f"min has to be smaller than max, was: {low:g} >= {high:g}")
    return _nudged(np.asarray(low), np.asarray(high), *_steps(node))


@kernel("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
def fake_quant_vars(node: Construction) -> Kernel:
    """Quantisation to the ranges that the inputs give; a range from zero to zero gives zeros."""
    first, last = _steps(node)
    check = _check_channels if node.op.endswith("PerChannel") else _check_scalars

    def quantise(x: Array, low: Array, high: Array) -> Array:
        check(x, low, high)
        result = _quantised(x, _nudged(np.asarray(low), np.asarray(high), first, last))
        return np.where((low == 0) & (high == 0), np.float32(0), result)

    return quantise


def _check_scalars(x: Array, low: Array, high: Array) -> None:
    require(np.ndim(low) == 0, f"`min` must be rank 0 but is rank {np.ndim(low)}")
    require(np.ndim(high) == 0, f"`max` must be rank 0 but is rank {np.ndim(high)}")


def _check_channels(x: Array, low: Array, high: Array) -> None:
    depth = x.shape[-1] if x.ndim else 0
    require(low.shape == (depth,), f"min has incorrect size, expected {depth} was {low.size}")
    require(high.shape == (depth,), f"max has incorrect size, expected {depth} was {high.size}")


@kernel("FakeQuantWithMinMaxVarsGradient", "FakeQuantWithMinMaxVarsPerChannelGradient")
def fake_quant_vars_gradient(node: Construction) -> Kernel:
    """x gets the gradient inside the range; the lower end gets it below, the upper end above."""
    first, last = _steps(node)
    per_channel = node.op.endswith("PerChannelGradient")
    zero = np.float32(0)

    def gradient(gradients: Array, x: Array, low: Array, high: Array) -> tuple[Array, Array, Array]:
        require(gradients.shape == x.shape, "gradient and input must be the same size")
        (_check_channels if per_channel else _check_scalars)(x, low, high)
        degenerate = (low == 0) & (high == 0)
        start, end, *_ = _nudged(np.asarray(low), np.asarray(high), first, last)
        below, above = (x < start) & ~degenerate, (x > end) & ~degenerate
        axes = tuple(range(x.ndim - 1)) if per_channel else None
        passed = np.where(below | above, zero, gradients)
        return (
            passed,
            np.asarray(np.where(below, gradients, zero).sum(axis=axes, dtype=np.float32)),
            np.asarray(np.where(above, gradients, zero).sum(axis=axes, dtype=np.float32)),
        )

    return gradient
