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


@gradient("RaggedTensorToSparse")
def ragged_to_sparse(op: Forward, _indices: None, grad: Tensor, _shape: None) -> Gradients:
    """The values in their own shape."""
    return *[None] * (len(op.inputs) - 1), op.make("Reshape", grad, shape_of(op, len(op.inputs) - 1))


@gradient("RaggedFillEmptyRows", takes_none=True)
def fill_empty_rows(op: Forward, _rows: None, grad: Tensor | None, _empty: None, _places: None) -> Gradients:
    """Calls the op that computes this gradient."""
    if grad is None:
        return [None] * 4
    to_values, to_default = op.make_all("RaggedFillEmptyRowsGrad", op.outputs[3], grad)
    return None, to_values, None, to_default


@gradient("RaggedGather")
def ragged_gather(op: Forward, *grads: Tensor | None) -> Gradients:
    """Each value gets the sum over all places that it went to, found by gathering the values' numbers."""
    *splits, _, indices = op.inputs
    count = op.make("StridedSlice", shape_of(op, len(splits)), [0], [1], [1], shrink_axis_mask=1)
    numbers = op.make("Range", 0, count, 1)
    gathered = op.make_all("RaggedGather", splits, numbers, indices, **op.own_attrs("OUTPUT_RAGGED_RANK"))
    return *[None] * len(splits), op.make("UnsortedSegmentSum", grads[-1], gathered[-1], count), None


@gradient("RaggedTensorToVariant")
def ragged_to_variant(op: Forward, grad: Tensor) -> Gradients:
    """Calls the op that computes this gradient."""
    *splits, values = op.inputs
    outer = splits[0] if splits else op.g.constant(0, DataType.INT64)
    shape = shape_of(op, len(splits))
    back = op.make("RaggedTensorToVariantGradient", grad, outer, shape, Tvalues=values.dtype)
    return *[None] * len(splits), back


@gradient("RaggedTensorFromVariant")
def ragged_from_variant(op: Forward, *grads: Tensor | None) -> Gradients:
    """The gradients of the values under the same splits; of variants in a vector one for each."""
    inner, rank = op.attrs["input_ragged_rank"], op.attrs["output_ragged_rank"]
    batched = rank > (max(inner, 0))
    return (op.make("RaggedTensorToVariant", op.outputs[:-1], grads[-1], batched_input=batched),)
