"""Gradients of reductions: the gradient is stretched along the reduced axes and weighted; axes get none.

Elements that equal an extremum share its gradient equally. Axes are numbers if they are known before the run: then no
nodes are added to compute them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...analysis.gradient_support import conjugate, rank_of, shape_of
from ...dtypes import DataType

if TYPE_CHECKING:
    from ...builder.handles import Tensor


def known_axes(op: Forward, port: int) -> tuple[int, ...] | None:
    """The axes that input `port` names, counted from the front; None if they or the rank are unknown."""
    value, sizes = op.constant_input(port), op.input_sizes(0)
    if value is None or not isinstance(sizes, tuple):
        return None
    return tuple(sorted({int(axis) % max(len(sizes), 1) for axis in np.ravel(value)}))


def kept_shape(op: Forward, axes_port: int = 1) -> Tensor:
    """The shape of input 0 with 1 in place of the sizes of the axes that input `axes_port` names."""
    g, axes, sizes = op.g, known_axes(op, axes_port), op.input_sizes(0)
    if axes is not None and isinstance(sizes, tuple):
        kept = [1 if axis in axes else size for axis, size in enumerate(sizes)]
        if sum(size < 0 for size in kept) <= 1 and 0 not in kept:
            return g.constant([max(size, -1) for size in kept], DataType.INT32)
    rank = rank_of(op, 0)
    named = op.make("Cast", op.inputs[axes_port], DstT=DataType.INT32)
    named = op.make("Reshape", op.make("FloorMod", named + rank, rank), g.constant([-1], DataType.INT32))
    ones = op.make("OnesLike", named)
    every = op.make("Range", 0, rank, 1)
    return op.make("DynamicStitch", [every, named], [shape_of(op, 0), ones])


def as_kept(op: Forward, tensor: Tensor) -> Tensor:
    """Reshapes a tensor of the output's shape so that the reduced axes are back with size 1."""
    return tensor if op.attrs["keep_dims"] else op.make("Reshape", tensor, kept_shape(op))


def stretched(op: Forward, tensor: Tensor) -> Tensor:
    """Broadcasts a tensor of the output's shape to the shape of the input, along all reduced axes."""
    axes = known_axes(op, 1)
    in_front = axes is not None and axes == tuple(range(len(axes)))  # then broadcasting adds these axes itself
    kept = tensor if in_front else as_kept(op, tensor)
    return op.make("BroadcastTo", kept, shape_of(op, 0))


def reduced_count(op: Forward, dtype: DataType) -> Tensor:
    """How many elements of the input were reduced to one of the output, as a scalar of type `dtype`."""
    axes, sizes = known_axes(op, 1), op.input_sizes(0)
    if axes is not None and isinstance(sizes, tuple) and all(sizes[axis] >= 0 for axis in axes):
        return op.g.constant(int(np.prod([sizes[axis] for axis in axes], dtype=np.int64)), dtype)
    of_input = op.make("Size", op.inputs[0])
    of_output = op.make("Maximum", op.make("Size", op.outputs[0]), 1)
    return op.make("Cast", op.make("FloorDiv", of_input, of_output), DstT=dtype)


@gradient("Sum")
def total(op: Forward, grad: Tensor) -> Gradients:
    """Every term gets g."""
    return stretched(op, grad), None


@gradient("Mean")
def mean(op: Forward, grad: Tensor) -> Gradients:
    """Every term gets g divided by the number of terms."""
    return stretched(op, grad) / reduced_count(op, grad.dtype), None


@gradient("Max", "Min")
def extremum(op: Forward, grad: Tensor) -> Gradients:
    """Each of the n elements that equal the extremum gets g / n."""
    x, axes = op.inputs
    reached = op.make("Equal", x, as_kept(op, op.outputs[0]))
    reached = op.make("Cast", reached, DstT=x.dtype)
    count = op.make("Sum", reached, axes, keep_dims=True)
    return reached / count * as_kept(op, grad), None


@gradient("EuclideanNorm")
def euclidean_norm(op: Forward, grad: Tensor) -> Gradients:
    """d x = x g / y."""
    return op.inputs[0] * (as_kept(op, grad) / as_kept(op, op.outputs[0])), None


@gradient("L2Loss")
def l2_loss(op: Forward, grad: Tensor) -> Gradients:
    """d x = x g."""
    return (op.inputs[0] * grad,)


@gradient("Prod")
def product(op: Forward, grad: Tensor) -> Gradients:
    """g times the product of all others, found without a division, so that zeros are handled exactly.

    The others of an element are those before and after it along the first axis; the products along that axis are then
    multiplied with those before and after along the next axis, and so on.
    """
    axes = known_axes(op, 1)
    if axes is None:
        return _product_over_open_axes(op, grad), None
    others, remaining = None, op.inputs[0]
    for number, axis in enumerate(axes, 1):
        along = op.g.constant(axis, DataType.INT32)
        factor = _others(op, remaining, along)
        others = factor if others is None else others * factor
        if number < len(axes):
            remaining = op.make("Prod", remaining, along, keep_dims=True)
    grad = stretched(op, grad)
    return grad if others is None else grad * conjugate(op, others), None


def _others(op: Forward, x: Tensor, axis: Tensor) -> Tensor:
    """For each element the product of all others along an axis."""
    before = op.make("Cumprod", x, axis, exclusive=True)
    return before * op.make("Cumprod", x, axis, exclusive=True, reverse=True)


def _product_over_open_axes(op: Forward, grad: Tensor) -> Tensor:
    """As `product`, when the axes are unknown: they are moved to the end and flattened into one."""
    g, rank = op.g, rank_of(op, 0)
    axes = op.make("Cast", op.inputs[1], DstT=DataType.INT32)
    axes = op.make("Reshape", op.make("FloorMod", axes + rank, rank), g.constant([-1], DataType.INT32))
    others = op.make("ListDiff", op.make("Range", 0, rank, 1), axes)
    order = op.make("ConcatV2", [others, axes], 0)
    moved = op.make("Transpose", op.inputs[0], order)
    shape = shape_of(op, 0)
    zero = g.constant(0, DataType.INT32)
    ends = [op.make("Prod", op.make("GatherV2", shape, part, zero), zero) for part in (others, axes)]
    flat_products = _others(op, op.make("Reshape", moved, op.make("Pack", ends)), g.constant(1, DataType.INT32))
    products = op.make("Reshape", flat_products, op.make("Shape", moved))
    products = op.make("Transpose", products, op.make("InvertPermutation", order))
    return stretched(op, grad) * conjugate(op, products)
