"""The gradient of GELU: an op of its own, which has no gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient

if TYPE_CHECKING:
    from ...builder.handles import Tensor


@gradient("Partita>Gelu")
def gelu(op: Forward, grad: Tensor) -> Gradients:
    """Calls GeluGrad."""
    return (op.make("Partita>GeluGrad", grad, op.inputs[0], **op.own_attrs("approximate")),)
