"""Gradients of what debuggers put into a graph: tensors pass, and so do their gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient

if TYPE_CHECKING:
    from ...builder.handles import Tensor


@gradient("DebugGradientIdentity", "DebugIdentity", "DebugIdentityV2", "DebugIdentityV3")
def observed(_op: Forward, grad: Tensor) -> Gradients:
    """d x = d y."""
    return (grad,)
