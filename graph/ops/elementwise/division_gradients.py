"""Gradients of division and remainder. Quotients that are rounded to whole numbers have none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...analysis.gradient_support import conjugate, undo_broadcast

if TYPE_CHECKING:
    from ...builder.handles import Tensor


@gradient("Div", "RealDiv")
def divide(op: Forward, grad: Tensor) -> Gradients:
    """d x = g / conj(y), d y = -g conj(x / y^2)."""

    def dy() -> Tensor:
        x, y = (conjugate(op, tensor) for tensor in op.inputs)
        return grad * (-x / y / y)

    return undo_broadcast(op, lambda: grad / conjugate(op, op.inputs[1]), dy)


@gradient("FloorMod")
def floor_mod(op: Forward, grad: Tensor) -> Gradients:
    """Of x - y floor(x / y): d x = g, d y = -g floor(x / y)."""
    return undo_broadcast(op, lambda: grad, lambda: grad * -op.make("FloorDiv", *op.inputs))
