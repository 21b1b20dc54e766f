"""Sums of the gradients that one tensor gets from its consumers: dense ones by AddN, those of rows by concatenation."""

from __future__ import annotations

from collections.abc import Sequence

from ..analysis.gradient_rules import Gradient, IndexedSlices
from ..builder.extension import Extension
from ..builder.handles import Tensor
from ..dtypes import DataType


def summed(g: Extension, parts: list[Gradient] | None) -> Gradient:
    """The sum of `parts`, None if there are none; afterwards the list has only the sum."""
    if parts is None:
        return None
    if len(parts) > 1:
        rows = [part for part in parts if isinstance(part, IndexedSlices)]
        if len(rows) == len(parts):
            total: Gradient = _joined(g, rows)
        else:
            total = g.op("AddN", [dense(g, part) for part in parts], name="AddN")[0]
        parts[:] = [total]
    return parts[0]


def _joined(g: Extension, parts: Sequence[IndexedSlices]) -> IndexedSlices:
    """`IndexedSlices` of one tensor, concatenated."""
    axis = g.constant(0, DataType.INT32, name="axis")
    values = g.op("ConcatV2", [part.values for part in parts], axis, name="values")[0]
    indices = g.op("ConcatV2", [part.indices for part in parts], axis, name="indices")[0]
    return IndexedSlices(values, indices, parts[0].dense_shape)


def dense(g: Extension, gradient: Gradient) -> Tensor | None:
    """A gradient as a tensor of the shape of the tensor that it belongs to."""
    if not isinstance(gradient, IndexedSlices):
        return gradient
    zero, one = g.constant([0], DataType.INT32), g.constant([1], DataType.INT32)
    rows = g.op("StridedSlice", gradient.dense_shape, zero, one, one, shrink_axis_mask=1, name="rows")
    return g.op("UnsortedSegmentSum", gradient.values, gradient.indices, rows, name="dense")[0]
