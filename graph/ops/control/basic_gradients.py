"""Gradients of ops that pass values on.

Flows in: what flows back. Always holds: what reads a variable passes what flows back on to what stands for the
variable, its reference or its handle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....errors import NotFoundError
from ...analysis.gradient_rules import Forward, Gradients, gradient

if TYPE_CHECKING:
    from ...builder.handles import Tensor


@gradient("Identity", "RefIdentity", "PlaceholderWithDefault", "CheckNumerics", "CheckNumericsV2", "EnsureShape")
def identity(_op: Forward, grad: Tensor) -> Gradients:
    """d x = d y."""
    return (grad,)


@gradient("DebugIdentity", "DebugIdentityV2", "DebugGradientIdentity", "ReadVariableOp")
def observed(_op: Forward, grad: Tensor) -> Gradients:
    """d x = d y; a handle gets what the variable would."""
    return (grad,)


@gradient("IdentityN")
def identity_n(_op: Forward, *grads: Tensor) -> Gradients:
    """Each output's to its input."""
    return grads


@gradient("Print")
def printed(op: Forward, grad: Tensor) -> Gradients:
    """d x = d y; nothing for what is printed."""
    return [grad] + [None] * (len(op.input_types) - 1)


@gradient("AddN", "AccumulateNV2")
def add_n(op: Forward, grad: Tensor) -> Gradients:
    """The same to every term."""
    return [grad] * len(op.input_types)


@gradient("PreventGradient")
def prevented(op: Forward, _grad: Tensor) -> Gradients:
    """Raises NotFoundError with the node's message."""
    message = op.attrs["message"].decode() or "it prevents gradients; stop them before it"
    raise NotFoundError(f"gradient explicitly disabled. Reason: {message}", node=op.name, op=op.op)


@gradient("OptionalFromValue")
def optional_from_value(op: Forward, grad: Tensor) -> Gradients:
    """What flows back is an optional of the gradients."""
    types = op.input_types
    return op.make_all("OptionalGetValue", grad, output_types=types, output_shapes=[None] * len(types))


@gradient("OptionalGetValue")
def optional_get_value(op: Forward, *grads: Tensor) -> Gradients:
    """An optional of what flows back."""
    return (op.make("OptionalFromValue", list(grads)),)
