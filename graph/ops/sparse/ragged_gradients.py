"""Gradient of RaggedTensorToTensor: each value gets the gradient at its place in the dense tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...analysis.gradient_support import masked, shape_of
from ...dtypes import DataType

if TYPE_CHECKING:
    from ...builder.handles import Tensor


@gradient("RaggedTensorToTensor")
def ragged_to_tensor(op: Forward, grad: Tensor) -> Gradients:
    """Values get the gradient at their places, found by running the op on value numbers; the default gets the rest."""
    shape, _, _, *partitions = op.inputs
    value_shape = shape_of(op, 1)
    count = op.make("StridedSlice", value_shape, [0], [1], [1], shrink_axis_mask=1)
    inner = op.make("StridedSlice", value_shape, [1], [0], [1], end_mask=1)
    full = op.make("Shape", grad)
    outer_rank = op.make("Size", full) - op.make("Size", inner)
    outer = op.make("Slice", full, [0], op.make("Reshape", outer_rank, [1]))
    places = op.make(
        "RaggedTensorToTensor",
        op.make("Cast", outer, DstT=shape.dtype),
        op.make("Range", 0, count, 1),
        op.g.constant(-1, DataType.INT32),
        partitions,
        **op.own_attrs("row_partition_types"),
    )
    to_values = op.make("UnsortedSegmentSum", grad, places, count)
    ones = op.make("Fill", op.make("Reshape", op.make("Size", inner), [1]), 1)
    free = op.make("Reshape", op.make("Less", places, 0), op.make("ConcatV2", [outer, ones], 0))
    defaulted = masked(op, free, grad)
    own = shape_of(op, 2)
    axes = op.make("BroadcastGradientArgs", own, full)
    to_default = op.make("Reshape", op.make("Sum", defaulted, axes), own)
    return None, to_values, to_default, *[None] * len(partitions)
