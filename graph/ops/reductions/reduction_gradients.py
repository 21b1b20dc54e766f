"""Gradients of reductions: the gradient is stretched along the reduced axes and weighted; axes get none.

Elements that equal an extremum share its gradient equally.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_axes import as_kept, known_axes, reduced_count, stretched
from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...analysis.gradient_support import conjugate, rank_of, shape_of
from ...dtypes import DataType

if TYPE_CHECKING:
    from ...builder.handles import Tensor


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
