"""Gradients of the marks that say how a tensor is spread over devices: what flows back is spread in the same way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient

if TYPE_CHECKING:
    from ...builder.handles import Tensor


@gradient("XlaSharding")
def sharding(op: Forward, grad: Tensor) -> Gradients:
    return (op.make("XlaSharding", grad, **op.own_attrs("sharding", "unspecified_dims")),)
