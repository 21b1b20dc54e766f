"""Gradients of ops on two tensors that broadcast, z = f(x, y).

Each is g times a partial derivative, conjugated for complex numbers, and summed over the axes its input was stretched
along.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...analysis.gradient_support import COMPLEX, conjugate, masked, number, undo_broadcast, where

if TYPE_CHECKING:
    from ...builder.handles import Tensor


@gradient("Add", "AddV2")
def add(op: Forward, grad: Tensor) -> Gradients:
    """d x = d y = g."""
    return undo_broadcast(op, lambda: grad, lambda: grad)


@gradient("Sub")
def sub(op: Forward, grad: Tensor) -> Gradients:
    """d x = g, d y = -g."""
    return undo_broadcast(op, lambda: grad, lambda: -grad)


@gradient("Mul")
def mul(op: Forward, grad: Tensor) -> Gradients:
    """d x = g conj(y), d y = conj(x) g."""
    return undo_broadcast(op, lambda: grad * conjugate(op, op.inputs[1]), lambda: conjugate(op, op.inputs[0]) * grad)


@gradient("MulNoNan")
def mul_no_nan(op: Forward, grad: Tensor) -> Gradients:
    """As Mul; 0 where the other factor is 0."""
    return undo_broadcast(
        op,
        lambda: op.make("MulNoNan", grad, conjugate(op, op.inputs[1])),
        lambda: op.make("MulNoNan", conjugate(op, op.inputs[0]), grad),
    )


@gradient("DivNoNan")
def div_no_nan(op: Forward, grad: Tensor) -> Gradients:
    """As RealDiv; 0 where y is 0."""

    def dy() -> Tensor:
        x, y = (conjugate(op, tensor) for tensor in op.inputs)
        return grad * op.make("DivNoNan", op.make("DivNoNan", -x, y), y)

    return undo_broadcast(op, lambda: op.make("DivNoNan", grad, conjugate(op, op.inputs[1])), dy)


@gradient("Pow")
def power(op: Forward, grad: Tensor) -> Gradients:
    """d x = g conj(y x^(y-1)), d y = g conj(z log(x)), the latter 0 where the logarithm is not defined."""

    def dx() -> Tensor:
        x, y = (conjugate(op, tensor) for tensor in op.inputs)
        return grad * (y * op.make("Pow", x, y - 1))

    def dy() -> Tensor:
        x, z = conjugate(op, op.inputs[0]), conjugate(op, op.outputs[0])
        defined = op.make("NotEqual" if x.dtype in COMPLEX else "Greater", x, number(op, 0, x))
        log = op.make("Log", where(op, defined, x, number(op, 1, x)))
        return grad * z * masked(op, defined, log)

    return undo_broadcast(op, dx, dy)


@gradient("Maximum", "Minimum")
def extremum(op: Forward, grad: Tensor) -> Gradients:
    """The larger (smaller) input gets g; x gets it where both are equal."""
    first = op.make("GreaterEqual" if op.op == "Maximum" else "LessEqual", *op.inputs)
    zero = number(op, 0, grad)
    return undo_broadcast(op, lambda: where(op, first, grad, zero), lambda: where(op, first, zero, grad))


@gradient("SquaredDifference")
def squared_difference(op: Forward, grad: Tensor) -> Gradients:
    """d x = 2 g (x - y), d y = -d x."""
    twice = grad * 2 * (op.inputs[0] - op.inputs[1])
    return undo_broadcast(op, lambda: twice, lambda: -twice)


@gradient("Atan2")
def atan2(op: Forward, grad: Tensor) -> Gradients:
    """Of atan(y / x): d y = g x / (x^2 + y^2), d x = -g y / (x^2 + y^2)."""
    y, x = op.inputs
    scaled = grad / (op.make("Square", x) + op.make("Square", y))
    return undo_broadcast(op, lambda: x * scaled, lambda: -y * scaled)


def _not_zero(op: Forward) -> Tensor:
    """1 where x is not 0, 0 where it is."""
    x = op.inputs[0]
    return op.make("Cast", op.make("NotEqual", x, number(op, 0, x)), DstT=x.dtype)


@gradient("Xdivy")
def xdivy(op: Forward, grad: Tensor) -> Gradients:
    """As x / y; 0 where x is 0."""
    x, y = (conjugate(op, tensor) for tensor in op.inputs)
    return undo_broadcast(
        op,
        lambda: grad * op.make("Xdivy", _not_zero(op), y),
        lambda: grad * op.make("Xdivy", -x, op.make("Square", y)),
    )


@gradient("Xlogy")
def xlogy(op: Forward, grad: Tensor) -> Gradients:
    """As x log(y); 0 where x is 0."""
    x, y = (conjugate(op, tensor) for tensor in op.inputs)
    return undo_broadcast(op, lambda: grad * op.make("Xlogy", _not_zero(op), y), lambda: grad * op.make("Xdivy", x, y))


@gradient("Xlog1py")
def xlog1py(op: Forward, grad: Tensor) -> Gradients:
    """As x log(1 + y); 0 where x is 0."""
    x, y = (conjugate(op, tensor) for tensor in op.inputs)
    return undo_broadcast(
        op, lambda: grad * op.make("Xlog1py", _not_zero(op), y), lambda: grad * op.make("Xdivy", x, y + 1)
    )


@gradient("NextAfter")
def next_after(op: Forward, grad: Tensor) -> Gradients:
    """d x = g, d y = 0, as in TensorFlow: the result is the neighbour of x, in the direction of y."""
    return undo_broadcast(op, lambda: grad, lambda: grad * 0)


@gradient("Cross")
def cross(op: Forward, grad: Tensor) -> Gradients:
    """d a = b x g, d b = g x a."""
    a, b = op.inputs
    return op.make("Cross", b, grad), op.make("Cross", grad, a)


@gradient("AddN", "AccumulateNV2")
def add_n(op: Forward, grad: Tensor) -> Gradients:
    """Every term gets g."""
    return [grad] * len(op.input_types)
