"""Gradients of ops on the rows of ragged tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...analysis.gradient_support import shape_of

if TYPE_CHECKING:
    from ...builder.handles import Tensor


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
