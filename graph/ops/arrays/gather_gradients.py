"""Gradients of ops that read elements by index; the indices get none.

Rows read along the first axis have gradients as `IndexedSlices`, all else dense ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rows import row_slices, summed_by_index
from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...analysis.gradient_support import rank_of, shape_of
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
