"""Gradients of adding a bias per channel, and of that op's own gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...analysis.gradient_support import zeros_like

if TYPE_CHECKING:
    from ...builder.handles import Tensor


@gradient("BiasAdd", "BiasAddV1")
def bias_add(op: Forward, grad: Tensor) -> Gradients:
    """The values get g, the bias its sum per channel."""
    return grad, op.make("BiasAddGrad", grad, **op.own_attrs("data_format")) if op.wants(1) else None


@gradient("BiasAddGrad")
def bias_add_grad(op: Forward, grad: Tensor) -> Gradients:
    """g of a channel, repeated for all its elements."""
    return (op.make("BiasAdd", zeros_like(op, 0), grad, **op.own_attrs("data_format")),)
