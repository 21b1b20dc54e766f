"""Gradients of ops that round values to a grid: rounding counts as slope 1 (Bengio et al. 2013).

Values outside the range have no gradient; the bound that they were clipped to gets theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...analysis.gradient_support import masked
from ...dtypes import DataType

if TYPE_CHECKING:
    from ...builder.handles import Tensor


@gradient("FakeQuantWithMinMaxArgs")
def fake_quant(op: Forward, grad: Tensor) -> Gradients:
    """Calls the op that computes this gradient."""
    attrs = op.own_attrs("min", "max", "num_bits", "narrow_range")
    return (op.make("FakeQuantWithMinMaxArgsGradient", grad, op.inputs[0], **attrs),)


@gradient("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
def fake_quant_vars(op: Forward, grad: Tensor) -> Gradients:
    """Calls the op that computes this gradient."""
    attrs = op.own_attrs("num_bits", "narrow_range")
    return op.make_all(f"{op.op}Gradient", grad, *op.inputs, **attrs)


@gradient("QuantizeAndDequantize", "QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3")
def straight_through(op: Forward, grad: Tensor) -> Gradients:
    """d x = g; none for the range."""
    return grad, *[None] * (len(op.input_types) - 1)


@gradient("QuantizeAndDequantizeV4")
def inside_range(op: Forward, grad: Tensor) -> Gradients:
    """x gets g where it is inside the range; the bound that it was clipped to gets g elsewhere."""
    x, low, high = op.inputs
    axis = op.attrs["axis"]
    if axis != -1:
        rank = op.make("Rank", x)
        shape = op.make("OneHot", op.g.constant(axis, DataType.INT32), rank, op.make("Size", low), 1)
        low, high = (op.make("Reshape", bound, shape) for bound in (low, high))
    below, above = op.make("Less", x, low), op.make("Greater", x, high)
    inside = op.make("LogicalNot", op.make("LogicalOr", below, above))
    to_bounds = [_to_bound(op, masked(op, beyond, grad), port) for port, beyond in ((1, below), (2, above))]
    return masked(op, inside, grad), *to_bounds


def _to_bound(op: Forward, grad: Tensor, port: int) -> Tensor:
    """The sum over all axes but that of the bounds."""
    axis, rank = op.attrs["axis"], op.make("Rank", grad)
    every = op.make("Range", 0, rank, 1)
    if axis != -1:
        every = op.make("ListDiff", every, op.g.constant([axis], DataType.INT32))
    return op.make("Reshape", op.make("Sum", grad, every), op.make("Shape", op.inputs[port]))
