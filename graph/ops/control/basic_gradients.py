"""Gradients of ops that pass values on. The gradient of a variable's value becomes that of the variable's reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....errors import NotFoundError
from ...analysis.gradient_rules import Forward, Gradients, gradient

if TYPE_CHECKING:
    from ...builder.handles import Tensor


@gradient("Identity", "RefIdentity", "PlaceholderWithDefault", "EnsureShape")
def identity(_op: Forward, grad: Tensor) -> Gradients:
    """d x = d y."""
    return (grad,)


@gradient("IdentityN")
def identity_n(_op: Forward, *grads: Tensor) -> Gradients:
    return grads


@gradient("PreventGradient")
def prevented(op: Forward, _grad: Tensor) -> Gradients:
    """Raises NotFoundError with the node's message."""
    message = op.attrs["message"].decode() or "it prevents gradients; stop them before it"
    raise NotFoundError(f"gradient explicitly disabled. Reason: {message}", node=op.name, op=op.op)
