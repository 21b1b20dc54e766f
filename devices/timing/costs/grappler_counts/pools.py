"""Pools, batch normalisation and their gradients.

Only the first versions of batch normalisation have rules: FusedBatchNormV3 counts as an op that moves its tensors.
"""

from __future__ import annotations

from math import prod

from .....graph.dtypes import Dims
from ....kernels.op_cost import CostContext
from .count import CountRule, GrapplerCount, counted
from .windows import Windows, axes, windows

_RSQRT = 5  # operations


def _pool_windows(c: CostContext, image: Dims) -> Windows:
    height, width, _ = axes(c)
    ksize = c.attrs["ksize"]
    return windows(c, image, (ksize[height], ksize[width]))


def _pool(c: CostContext, operations_per_output: int, seen: Windows) -> GrapplerCount:
    """Rows that windows jump over are not read."""
    read = c.bytes_in(0)
    if seen.window_height < seen.stride_height:
        rows = seen.window_height * seen.out_height
        read = c.bytes_in(0) // max(1, prod(c.inputs[0])) * seen.batch * seen.width * rows * seen.depth
    return GrapplerCount(seen.positions * seen.depth * operations_per_output, read + c.bytes_out())


def _max_pool(c: CostContext) -> GrapplerCount:
    """A comparison less than a window has pixels; a copy for windows of one."""
    seen = _pool_windows(c, c.inputs[0])
    return _pool(c, max(1, seen.window - 1), seen)


def _avg_pool(c: CostContext) -> GrapplerCount:
    seen = _pool_windows(c, c.inputs[0])
    return _pool(c, seen.window, seen)


def _max_pool_gradient(c: CostContext) -> GrapplerCount:
    """Pools again, then sets each pixel, twice where windows overlap. Inputs: image, pooled (not read), gradient."""
    seen = _pool_windows(c, c.inputs[0])
    operations = seen.pixels
    if seen.window > 1:
        operations = seen.positions * (seen.window - 1) + seen.pixels * (2 if seen.overlap else 1)
    return GrapplerCount(operations * seen.depth, 2 * c.bytes_in(0) + c.bytes_in(2))


def _avg_pool_gradient(c: CostContext) -> GrapplerCount:
    """Inputs: shape of the image, gradient."""
    seen = _pool_windows(c, c.outputs[0])
    per_window = seen.window + 1 if seen.overlap else 1
    return counted(seen.depth * (seen.pixels + seen.positions * per_window), c)


def _batch_normalisation(c: CostContext) -> GrapplerCount:
    """In training, the image is read once for its moments and once for its result."""
    channels, image, per_channel = c.inputs[0][axes(c)[2]], c.bytes_in(0), c.bytes_in(1)
    if not c.attrs["is_training"]:
        return GrapplerCount(2 * c.elements_in(), 2 * image + 4 * per_channel)
    return GrapplerCount(4 * c.elements_in() + channels * (6 + _RSQRT), 3 * image + 6 * per_channel)


def _batch_normalisation_gradient(c: CostContext) -> GrapplerCount:
    """Inputs: gradient, image, scale, and two that are not read, or only for a moment."""
    channels, image, per_channel = c.inputs[1][axes(c)[2]], c.bytes_in(1), c.bytes_in(2)
    return GrapplerCount(11 * c.elements_in(1) + channels * (5 + _RSQRT), 4 * image + 4 * per_channel)


RULES: dict[str, CountRule] = {
    "MaxPool": _max_pool,
    "AvgPool": _avg_pool,
    "MaxPoolGrad": _max_pool_gradient,
    "AvgPoolGrad": _avg_pool_gradient,
    "FusedBatchNorm": _batch_normalisation,
    "FusedBatchNormGrad": _batch_normalisation_gradient,
}
