"""Gradients of TopK, ApproxTopK and NthElement: only chosen elements get a gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...analysis.gradient_support import element, rank_of, shape_of, span
from ...dtypes import DataType

if TYPE_CHECKING:
    from ...builder.handles import Tensor


@gradient("TopK", "TopKV2", takes_none=True)
def top_k(op: Forward, grad: Tensor | None, _indices: None) -> Gradients:
    """The gradient of each value goes to the element it was taken from."""
    nothing = [None] * (len(op.input_types) - 1)
    if grad is None:
        return None, *nothing
    return _scattered(op, grad, op.outputs[1], shape_of(op, 0)), *nothing


def _scattered(op: Forward, grad: Tensor, places: Tensor, shape: Tensor) -> Tensor:
    """Zeros of that shape, with each row of `grad` at its places."""
    g = op.g
    size, zero = element(op, shape, -1), g.constant(0, DataType.INT32)
    rows = op.make("Prod", span(op, shape, 0, -1), zero)
    first = op.make("Reshape", op.make("Range", 0, rows, 1) * size, [-1, 1])
    indices = op.make("Cast", places, DstT=DataType.INT32)
    k = element(op, op.make("Shape", indices), -1)
    flat_indices = op.make("Reshape", op.make("Reshape", indices, op.make("Pack", [rows, k])) + first, [-1, 1])
    flat_grad = op.make("Reshape", grad, g.constant([-1], DataType.INT32))
    scattered = op.make("ScatterNd", flat_indices, flat_grad, op.make("Reshape", rows * size, [1]))
    return op.make("Reshape", scattered, shape)


@gradient("ApproxTopK", takes_none=True)
def approx_top_k(op: Forward, grad: Tensor | None, _indices: None) -> Gradients:
    """As TopK, with the axis that is searched exchanged for the last one."""
    if grad is None:
        return (None,)
    places, shape, axis = op.outputs[1], shape_of(op, 0), op.attrs["reduction_dimension"]
    if axis == -1:
        return (_scattered(op, grad, places, shape),)
    order = _exchanged(op, axis)
    shape = op.make("GatherV2", shape, order, 0)
    scattered = _scattered(op, op.make("Transpose", grad, order), op.make("Transpose", places, order), shape)
    return (op.make("Transpose", scattered, order),)


def _exchanged(op: Forward, axis: int) -> Tensor:
    """The numbers of all axes of input 0, those of `axis` and of the last one exchanged."""
    rank = rank_of(op, 0)
    axes = op.make("Range", 0, rank, 1)
    one = op.make("Reshape", op.make("FloorMod", op.g.constant(axis, DataType.INT32), rank), [1])
    last = op.make("Reshape", rank - 1, [1])
    return op.make("DynamicStitch", [axes, one, last], [axes, last, one])


@gradient("NthElement")
def nth_element(op: Forward, grad: Tensor) -> Gradients:
    """The elements of a row that equal the result share its gradient equally."""
    last = op.g.constant(-1, DataType.INT32)
    x = op.inputs[0]
    equal = op.make("Equal", op.make("ExpandDims", op.outputs[0], last), x)
    equal = op.make("Cast", equal, DstT=x.dtype)
    count = op.make("Sum", equal, last, keep_dims=True)
    return equal / count * op.make("ExpandDims", grad, last), None
