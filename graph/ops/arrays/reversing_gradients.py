"""Gradients of reversing and rotating axes: the gradient is reversed or rotated back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient

if TYPE_CHECKING:
    from ...builder.handles import Tensor


@gradient("Reverse", "ReverseV2")
def reverse(op: Forward, grad: Tensor) -> Gradients:
    return op.make(op.op, grad, op.inputs[1]), None


@gradient("ReverseSequence")
def reverse_sequence(op: Forward, grad: Tensor) -> Gradients:
    return op.make("ReverseSequence", grad, op.inputs[1], **op.own_attrs("seq_dim", "batch_dim")), None


@gradient("Roll")
def roll(op: Forward, grad: Tensor) -> Gradients:
    return op.make("Roll", grad, -op.inputs[1], op.inputs[2]), None, None
