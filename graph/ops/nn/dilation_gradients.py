"""Gradient of morphological dilation: each maximum's gradient goes to the element and filter entry it came from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient

if TYPE_CHECKING:
    from ...builder.handles import Tensor


@gradient("Dilation2D")
def dilation(op: Forward, grad: Tensor) -> Gradients:
    attrs = op.own_attrs("strides", "rates", "padding")
    return (
        op.make("Dilation2DBackpropInput", *op.inputs, grad, **attrs),
        op.make("Dilation2DBackpropFilter", *op.inputs, grad, **attrs),
    )
