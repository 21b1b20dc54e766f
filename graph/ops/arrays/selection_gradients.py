"""Gradients of TopK and NthElement: only chosen elements get a gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_axes import element, span
from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...analysis.gradient_support import shape_of
from ...dtypes import DataType

if TYPE_CHECKING:
    from ...builder.handles import Tensor


@gradient("TopK", "TopKV2", takes_none=True)
def top_k(op: Forward, grad: Tensor | None, _indices: None) -> Gradients:
    """The gradient of each value goes to the element it was taken from."""
    nothing = [None] * (len(op.input_types) - 1)
    if grad is None:
        return None, *nothing
    g, shape = op.g, shape_of(op, 0)
    size, zero = element(op, shape, -1), g.constant(0, DataType.INT32)
    rows = op.make("Prod", span(op, shape, 0, -1), zero)
    first = op.make("Reshape", op.make("Range", 0, rows, 1) * size, [-1, 1])
    indices = op.make("Cast", op.outputs[1], DstT=DataType.INT32)
    k = element(op, op.make("Shape", indices), -1)
    flat_indices = op.make("Reshape", op.make("Reshape", indices, op.make("Pack", [rows, k])) + first, [-1, 1])
    flat_grad = op.make("Reshape", grad, op.g.constant([-1], DataType.INT32))
    scattered = op.make("ScatterNd", flat_indices, flat_grad, op.make("Reshape", rows * size, [1]))
    return op.make("Reshape", scattered, shape), *nothing


@gradient("NthElement")
def nth_element(op: Forward, grad: Tensor) -> Gradients:
    """The elements of a row that equal the result share its gradient equally."""
    last = op.g.constant(-1, DataType.INT32)
    x = op.inputs[0]
    equal = op.make("Equal", op.make("ExpandDims", op.outputs[0], last), x)
    equal = op.make("Cast", equal, DstT=x.dtype)
    count = op.make("Sum", equal, last, keep_dims=True)
    return equal / count * op.make("ExpandDims", grad, last), None
