"""Gradients of ops that choose or check elements: the chosen input gets g."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...analysis.gradient_support import masked, number, unstretch, where

if TYPE_CHECKING:
    from ...builder.handles import Tensor


@gradient("Select")
def select(op: Forward, grad: Tensor) -> Gradients:
    """`then` gets g where the condition holds, `else` where it does not."""
    condition, zeros = op.inputs[0], op.make("ZerosLike", grad)
    return None, op.make("Select", condition, grad, zeros), op.make("Select", condition, zeros, grad)


@gradient("SelectV2")
def select_v2(op: Forward, grad: Tensor) -> Gradients:
    """As Select, summed over the axes that an input was stretched along."""
    condition, zero = op.inputs[0], number(op, 0, grad)
    then = unstretch(op, where(op, condition, grad, zero), 1) if op.wants(1) else None
    otherwise = unstretch(op, where(op, condition, zero, grad), 2) if op.wants(2) else None
    return None, then, otherwise


@gradient("CheckNumerics", "CheckNumericsV2")
def checked(_op: Forward, grad: Tensor) -> Gradients:
    """d x = d y."""
    return (grad,)


@gradient("ClipByValue")
def clip(op: Forward, grad: Tensor) -> Gradients:
    """x gets g where it was not clipped; where it was, the bound does."""
    x, lower, upper = op.inputs
    below, above = op.make("Less", x, lower), op.make("Greater", x, upper)
    inside = masked(op, op.make("LogicalNot", op.make("LogicalOr", below, above)), grad)
    return inside, unstretch(op, masked(op, below, grad), 1), unstretch(op, masked(op, above, grad), 2)
