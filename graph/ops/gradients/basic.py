"""Gradients of ops that pass values on, and the ops through which nothing flows back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .registry import Forward, Gradients, flat, gradient

if TYPE_CHECKING:
    from ...handles import Tensor

flat(
    "Const",
    "StopGradient",
    "Shape",
    "ShapeN",
    "Size",
    "Rank",
    "ZerosLike",
    "OnesLike",
    "Placeholder",
)


@gradient("Identity", "PlaceholderWithDefault", "Snapshot")
def identity(_op: Forward, grad: Tensor) -> Gradients:
    """d x = d y."""
    return (grad,)


@gradient("IdentityN")
def identity_n(_op: Forward, *grads: Tensor) -> Gradients:
    """Each output's to its input."""
    return grads


@gradient("AddN")
def add_n(op: Forward, grad: Tensor) -> Gradients:
    """The same to every term."""
    return [grad] * len(op.input_types)
