"""Gradients of ops between real and complex numbers, and of conversions.

Flows in: what flows back. Always holds: the gradient of a complex tensor is d L / d Re + i d L / d Im, so that steps
against it go down.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...analysis.gradient_support import number, undo_broadcast
from ...dtypes import DataType

if TYPE_CHECKING:
    from ...builder.handles import Tensor

_CONTINUOUS = frozenset(
    {
        DataType.HALF,
        DataType.BFLOAT16,
        DataType.FLOAT,
        DataType.DOUBLE,
        DataType.COMPLEX64,
        DataType.COMPLEX128,
    }
)


@gradient("Cast")
def cast(op: Forward, grad: Tensor) -> Gradients:
    """g in the type of x, if values of both types change continuously."""
    source, target = op.input_types[0], op.output_types[0]
    if source not in _CONTINUOUS or target not in _CONTINUOUS:
        return (None,)
    return (op.make("Cast", grad, DstT=source),)


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
    """Real and imaginary part of g."""
    parts = {"Tout": op.input_types[0]}
    return undo_broadcast(op, lambda: op.make("Real", grad, **parts), lambda: op.make("Imag", grad, **parts))
