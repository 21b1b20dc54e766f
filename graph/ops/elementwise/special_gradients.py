"""Gradients of special functions; orders and shape parameters get none.

Derivatives are from the NIST Digital Library of Mathematical Functions, chapters 5-10 and 25.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...analysis.gradient_support import number, undo_broadcast, unstretch, where

if TYPE_CHECKING:
    from ...builder.handles import Tensor


def _function(name: str, derivative: Callable[[Forward, Tensor, Callable[[], Tensor]], Tensor]) -> None:
    """Registers a function's derivative, a function of x and, called only if needed, y = f(x)."""

    @gradient(name)
    def rule(op: Forward, grad: Tensor) -> Gradients:
        return (grad * derivative(op, op.inputs[0], lambda: op.outputs[0]),)


def _square(op: Forward, x: Tensor) -> Tensor:
    return op.make("Square", x)


def _at_zero(op: Forward, x: Tensor, value: float, elsewhere: Tensor) -> Tensor:
    return where(op, op.make("Equal", x, number(op, 0, x)), number(op, value, x), elsewhere)


_function("Erf", lambda op, x, _: op.make("Exp", -_square(op, x)) * (2 / math.sqrt(math.pi)))
_function("Erfc", lambda op, x, _: op.make("Exp", -_square(op, x)) * (-2 / math.sqrt(math.pi)))
_function("Erfinv", lambda op, _, y: op.make("Exp", _square(op, y())) * (math.sqrt(math.pi) / 2))
_function("Ndtri", lambda op, _, y: op.make("Exp", _square(op, y()) * 0.5) * math.sqrt(2 * math.pi))
_function("Lgamma", lambda op, x, _: op.make("Digamma", x))
_function("Digamma", lambda op, x, _: op.make("Polygamma", number(op, 1, x), x))
_function("Dawsn", lambda _op, x, y: 1 - x * y() * 2)
_function("Expint", lambda op, x, _: op.make("Exp", x) / x)
_function("FresnelCos", lambda op, x, _: op.make("Cos", _square(op, x) * (math.pi / 2)))
_function("FresnelSin", lambda op, x, _: op.make("Sin", _square(op, x) * (math.pi / 2)))
_function(
    "Spence",
    lambda op, x, _: where(op, op.make("Equal", x, number(op, 1, x)), number(op, -1, x), op.make("Log", x) / (1 - x)),
)

# Bessel functions, and those scaled by exp(-|x|) (I) or exp(x) (K).
_function("BesselI0", lambda op, x, _: op.make("BesselI1", x))
_function("BesselI0e", lambda op, x, y: op.make("BesselI1e", x) - op.make("Sign", x) * y())
_function("BesselI1", lambda op, x, y: _at_zero(op, x, 1.0, op.make("BesselI0", x) - y() / x))
_function(
    "BesselI1e",
    lambda op, x, y: _at_zero(op, x, 0.5, op.make("BesselI0e", x) - y() * (op.make("Sign", x) + 1 / x)),
)
_function("BesselJ0", lambda op, x, _: -op.make("BesselJ1", x))
_function("BesselJ1", lambda op, x, y: _at_zero(op, x, 0.5, op.make("BesselJ0", x) - y() / x))
_function("BesselY0", lambda op, x, _: -op.make("BesselY1", x))
_function("BesselY1", lambda op, x, y: op.make("BesselY0", x) - y() / x)
_function("BesselK0", lambda op, x, _: -op.make("BesselK1", x))
_function("BesselK0e", lambda op, x, y: y() - op.make("BesselK1e", x))
_function("BesselK1", lambda op, x, y: -op.make("BesselK0", x) - y() / x)
_function("BesselK1e", lambda op, x, y: y() * (1 - 1 / x) - op.make("BesselK0e", x))


def _gamma_density(op: Forward) -> Tensor:
    """x^(a-1) exp(-x) / Gamma(a)."""
    a, x = op.inputs
    return op.make("Exp", op.make("Log", x) * (a - 1) - x - op.make("Lgamma", a))


@gradient("Igamma")
def igamma(op: Forward, grad: Tensor) -> Gradients:
    """d a by IgammaGradA, d x = g times the density."""
    return undo_broadcast(op, lambda: grad * op.make("IgammaGradA", *op.inputs), lambda: grad * _gamma_density(op))


@gradient("Igammac")
def igammac(op: Forward, grad: Tensor) -> Gradients:
    """The gradients of Igamma, negative."""
    return undo_broadcast(op, lambda: -grad * op.make("IgammaGradA", *op.inputs), lambda: -grad * _gamma_density(op))


@gradient("Betainc")
def betainc(op: Forward, grad: Tensor) -> Gradients:
    """d x = g x^(a-1) (1-x)^(b-1) / B(a, b); none for a and b."""
    a, b, x = op.inputs
    log_beta = op.make("Lgamma", a) + op.make("Lgamma", b) - op.make("Lgamma", a + b)
    log = op.make("Xlog1py", b - 1, -x) + op.make("Xlogy", a - 1, x) - log_beta
    return None, None, unstretch(op, grad * op.make("Exp", log), 2)


@gradient("Zeta")
def zeta(op: Forward, grad: Tensor) -> Gradients:
    """d q = -g x zeta(x + 1, q); none for x."""
    x, q = op.inputs
    return None, unstretch(op, grad * -x * op.make("Zeta", x + 1, q), 1)


@gradient("Polygamma")
def polygamma(op: Forward, grad: Tensor) -> Gradients:
    """d x = g times the polygamma of the next order; none for the order."""
    n, x = op.inputs
    return None, unstretch(op, grad * op.make("Polygamma", n + 1, x), 1)
