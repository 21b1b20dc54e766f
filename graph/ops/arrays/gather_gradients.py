"""Gradients of ops that read elements by index; the indices get none.

Rows along the first axis have gradients as `IndexedSlices`; along any other axis they are summed by index. The ops that
gather from variables share these functions.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradient, Gradients, IndexedSlices, gradient
from ...analysis.gradient_support import element, rank_of, shape_of, span
from ...analysis.sizes import static
from ...dtypes import DataType

if TYPE_CHECKING:
    from ...builder.handles import Tensor


@gradient("Gather")
def gather(op: Forward, grad: Tensor) -> Gradients:
    return row_slices(op, grad, op.inputs[1], shape_of(op, 0)), None


@gradient("GatherV2")
def gather_v2(op: Forward, grad: Tensor) -> Gradients:
    """Slices where rows of the first axis are gathered, else a sum by index along the axis."""
    axis, batch_dims = op.constant_input(2), op.attrs["batch_dims"]
    if axis is not None and int(axis) == 0 and batch_dims == 0:
        return row_slices(op, grad, op.inputs[1], shape_of(op, 0)), None, None
    along = op.make("FloorMod", op.make("Cast", op.inputs[2], DstT=DataType.INT32), rank_of(op, 0))
    batch = op.g.constant(batch_dims, DataType.INT32)
    if batch_dims < 0:
        batch = batch + rank_of(op, 1)
    return summed_by_index(op, grad, shape_of(op, 0), along, batch), None, None


@gradient("GatherNd")
def gather_nd(op: Forward, grad: Tensor) -> Gradients:
    """The gradient scattered to the indices; where an index occurs twice its gradients are added."""
    shape = shape_of(op, 0, op.input_types[1])
    return op.make("ScatterNd", op.inputs[1], grad, shape), None


def _minus_one(op: Forward) -> Tensor:
    return op.g.constant([-1], DataType.INT32)


def row_slices(op: Forward, grad: Tensor, indices: Tensor, shape: Tensor) -> Gradient:
    """The gradient of a tensor whose rows at `indices` were gathered: the rows of `grad`, as slices of `shape`."""
    sizes, whole = op.input_sizes(1), static(op.output_sizes(0))
    if isinstance(sizes, tuple) and len(sizes) == 1:
        return IndexedSlices(grad, indices, shape)
    if isinstance(sizes, tuple) and whole is not None:
        values = op.make(
            "Reshape", grad, op.g.constant([prod(whole[: len(sizes)]), *whole[len(sizes) :]], DataType.INT32)
        )
    else:
        count = op.make("Reshape", op.make("Size", indices), op.g.constant([1], DataType.INT32))
        values = op.make("Reshape", grad, op.make("ConcatV2", [count, span(op, shape, 1, None)], 0))
    return IndexedSlices(values, op.make("Reshape", indices, _minus_one(op)), shape)


def summed_by_index(op: Forward, grad: Tensor, shape: Tensor, axis: Tensor, batch: Tensor) -> Tensor:
    """The gradient of a tensor of that shape that was gathered along `axis`: rows of `grad` with one index are summed.

    `indices` is input 1; the tensor and the indices have their first `batch` axes in common. The axes of `grad` are
    (batch, outer, indices, inner). They are transposed to (batch, indices, outer, inner), so that one segment sum adds
    the rows; each batch has segment numbers of its own. The axis is then transposed back to its place.
    """
    indices = op.inputs[1]
    rank = op.make("Size", shape)
    inner_begin = axis + op.make("Rank", indices) - batch  # in grad
    order = _ranges(op, (0, batch), (axis, inner_begin), (batch, axis), (inner_begin, op.make("Rank", grad)))
    zero = op.g.constant(0, DataType.INT32)
    rows = element(op, op.make("GatherV2", shape, op.make("Reshape", axis, _minus_one(op)), zero), 0)
    batches = op.make("Prod", span(op, shape, 0, batch), zero)
    outer, inner = span(op, shape, batch, axis), span(op, shape, axis + 1, None)
    first = op.make("Reshape", op.make("Range", 0, batches, 1) * rows, [-1, 1])
    per_batch = op.make(
        "Reshape",
        op.make("Cast", indices, DstT=DataType.INT32),
        op.make("Pack", [batches, op.make("FloorDiv", op.make("Size", indices), op.make("Maximum", batches, 1))]),
    )
    flat_indices = op.make("Reshape", per_batch + first, _minus_one(op))
    count = op.make("Size", flat_indices, out_type=DataType.INT32)
    moved = op.make("Transpose", grad, order)
    values = op.make("Reshape", moved, op.make("ConcatV2", [op.make("Reshape", count, [1]), outer, inner], 0))
    summed = op.make("UnsortedSegmentSum", values, flat_indices, batches * rows)
    whole = [span(op, shape, 0, batch), op.make("Reshape", rows, [1]), outer, inner]
    summed = op.make("Reshape", summed, op.make("ConcatV2", whole, 0))
    back = _ranges(op, (0, batch), (batch + 1, axis + 1), (batch, batch + 1), (axis + 1, rank))
    return op.make("Transpose", summed, back)


def _ranges(op: Forward, *ranges: tuple[int | Tensor, Tensor]) -> Tensor:
    """The concatenation of ranges [begin, end)."""
    return op.make("ConcatV2", [op.make("Range", begin, end, 1) for begin, end in ranges], 0)
