"""Gradients of ops on two tensors that broadcast."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .registry import Forward, Gradients, gradient
from .support import conjugate, undo_broadcast

if TYPE_CHECKING:
    from ...handles import Tensor


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
