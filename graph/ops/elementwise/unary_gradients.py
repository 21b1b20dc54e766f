"""Gradients of elementwise functions y = f(x): d x = g conj(f'(x)), in terms of x or y, whichever is cheaper.

Derivatives are those of any table (Abramowitz & Stegun, chapter 4).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...analysis.gradient_support import conjugate, number, undo_broadcast, zeros_like

if TYPE_CHECKING:
    from ...builder.handles import Tensor

Derivative = Callable[[Forward, "Tensor"], "Tensor"]

_CONJUGATING = {"Sqrt": "SqrtGrad", "Rsqrt": "RsqrtGrad", "Inv": "ReciprocalGrad", "Reciprocal": "ReciprocalGrad"}


@gradient("Tanh", "Sigmoid")
def fused(op: Forward, grad: Tensor) -> Gradients:
    """Calls the op that computes the gradient from y and g."""
    return (op.make(f"{op.op}Grad", conjugate(op, op.outputs[0]), grad),)


@gradient(*_CONJUGATING)
def fused_and_conjugated(op: Forward, grad: Tensor) -> Gradients:
    """Calls the op that computes the gradient from y, which it conjugates, and g."""
    return (op.make(_CONJUGATING[op.op], op.outputs[0], grad),)


@gradient("Neg")
def neg(_op: Forward, grad: Tensor) -> Gradients:
    """d x = -g."""
    return (-grad,)


@gradient("Abs")
def absolute(op: Forward, grad: Tensor) -> Gradients:
    """d x = g sign(x)."""
    return (grad * op.make("Sign", op.inputs[0]),)


@gradient("Sign")
def sign(op: Forward, _grad: Tensor) -> Gradients:
    """d x = 0."""
    return (zeros_like(op, 0),)


@gradient("Square")
def square(op: Forward, grad: Tensor) -> Gradients:
    """d x = 2 g conj(x)."""
    return (grad * (conjugate(op, op.inputs[0]) * 2),)


@gradient("Log")
def log(op: Forward, grad: Tensor) -> Gradients:
    """d x = g / conj(x)."""
    return (grad / conjugate(op, op.inputs[0]),)


@gradient("Log1p")
def log1p(op: Forward, grad: Tensor) -> Gradients:
    """d x = g / conj(1 + x)."""
    return (grad / (conjugate(op, op.inputs[0]) + 1),)


@gradient("Exp")
def exp(op: Forward, grad: Tensor) -> Gradients:
    """d x = g conj(y)."""
    return (grad * conjugate(op, op.outputs[0]),)


def _times(name: str, derivative: Derivative) -> None:
    def rule(op: Forward, grad: Tensor) -> Gradients:
        return (grad * derivative(op, conjugate(op, op.inputs[0])),)

    gradient(name)(rule)


def _over(name: str, denominator: Derivative) -> None:
    def rule(op: Forward, grad: Tensor) -> Gradients:
        return (grad / denominator(op, conjugate(op, op.inputs[0])),)

    gradient(name)(rule)


_times("Expm1", lambda op, x: op.make("Exp", x))
_times("Sin", lambda op, x: op.make("Cos", x))
_times("Cos", lambda op, x: -op.make("Sin", x))
_times("Sinh", lambda op, x: op.make("Cosh", x))
_times("Cosh", lambda op, x: op.make("Sinh", x))
_over("Tan", lambda op, x: op.make("Square", op.make("Cos", x)))
_over("Asin", lambda op, x: op.make("Sqrt", 1 - op.make("Square", x)))
_over("Acos", lambda op, x: -op.make("Sqrt", 1 - op.make("Square", x)))
_over("Atan", lambda op, x: op.make("Square", x) + 1)
_over("Atanh", lambda op, x: 1 - op.make("Square", x))


@gradient("Asinh")
def asinh(op: Forward, grad: Tensor) -> Gradients:
    """d x = g / conj(cosh(y))."""
    return (grad / op.make("Cosh", conjugate(op, op.outputs[0])),)


@gradient("Acosh")
def acosh(op: Forward, grad: Tensor) -> Gradients:
    """d x = g / conj(sinh(y))."""
    return (grad / op.make("Sinh", conjugate(op, op.outputs[0])),)


# Gradients of the fused ops above: z = h(y, g), so d y and d g. The last three are functions of conj(y), by which a
# gradient is conj(g) times the derivative.


@gradient("TanhGrad")
def tanh_grad(op: Forward, grad: Tensor) -> Gradients:
    """z = g (1 - y^2)."""
    y, g = (conjugate(op, tensor) for tensor in op.inputs)
    return grad * g * y * -2, op.make("TanhGrad", y, grad)


@gradient("SigmoidGrad")
def sigmoid_grad(op: Forward, grad: Tensor) -> Gradients:
    """z = g y (1 - y)."""
    y, g = (conjugate(op, tensor) for tensor in op.inputs)
    return grad * g * (1 - y * 2), op.make("SigmoidGrad", y, grad)


@gradient("SqrtGrad")
def sqrt_grad(op: Forward, grad: Tensor) -> Gradients:
    """z = g / 2 conj(y)."""
    over_y = grad / op.inputs[0]
    return -conjugate(op, over_y) * op.outputs[0], over_y * 0.5


@gradient("RsqrtGrad")
def rsqrt_grad(op: Forward, grad: Tensor) -> Gradients:
    """z = -g conj(y)^3 / 2."""
    y, g = conjugate(op, op.inputs[0]), op.inputs[1]
    return conjugate(op, grad) * g * op.make("Square", y) * -1.5, op.make("RsqrtGrad", y, grad)


@gradient("InvGrad", "ReciprocalGrad")
def reciprocal_grad(op: Forward, grad: Tensor) -> Gradients:
    """z = -g conj(y)^2."""
    y, g = conjugate(op, op.inputs[0]), op.inputs[1]
    return conjugate(op, grad) * g * y * -2, op.make("ReciprocalGrad", y, grad)


@gradient("Conj")
def conj(op: Forward, grad: Tensor) -> Gradients:
    """d x = conj(g)."""
    return (op.make("Conj", grad),)


def _complex(op: Forward, real: Tensor, imaginary: Tensor) -> Tensor:
    return op.make("Complex", real, imaginary, Tout=op.input_types[0])


@gradient("Real")
def real(op: Forward, grad: Tensor) -> Gradients:
    """d x = g."""
    return (_complex(op, grad, number(op, 0, grad)),)


@gradient("Imag")
def imag(op: Forward, grad: Tensor) -> Gradients:
    """d x = i g."""
    return (_complex(op, number(op, 0, grad), grad),)


@gradient("Angle")
def angle(op: Forward, grad: Tensor) -> Gradients:
    """d x = i g / conj(x)."""
    return (_complex(op, number(op, 0, grad), grad) / op.make("Conj", op.inputs[0]),)


@gradient("ComplexAbs")
def complex_abs(op: Forward, grad: Tensor) -> Gradients:
    """d x = g x / |x|, 0 at 0."""
    zero = number(op, 0, grad)
    scaled = _complex(op, grad, zero) * op.inputs[0]
    return (op.make("DivNoNan", scaled, _complex(op, op.outputs[0], zero)),)


@gradient("Complex")
def make_complex(op: Forward, grad: Tensor) -> Gradients:
    """The real and the imaginary part of g."""
    parts = {"Tout": op.input_types[0]}
    return undo_broadcast(op, lambda: op.make("Real", grad, **parts), lambda: op.make("Imag", grad, **parts))
