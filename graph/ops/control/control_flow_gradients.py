"""Gradients of conditionals: the gradient goes through the branch that was taken, and is dead in the other.

Loops are differentiated as a whole, by `graph/gradients/undo_loop.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...dtypes import DataType

if TYPE_CHECKING:
    from ...builder.handles import Tensor


@gradient("Switch", "RefSwitch", "_SwitchN", takes_none=True)
def switch(op: Forward, *grads: Tensor | None) -> Gradients:
    """The Merge of both branches' gradients; zeros for a branch that does not lead to y."""
    present = next(grad for grad in grads if grad is not None)
    parts = [_zeros(op, port, present) if grad is None else grad for port, grad in enumerate(grads)]
    return op.make("Merge", parts), None


def _zeros(op: Forward, port: int, like: Tensor) -> Tensor:
    """Zeros that are dead where output `port` is; `like` gives their type if the output is a resource."""
    output = op.outputs[port]
    if output.dtype is not DataType.RESOURCE:
        return op.make("ZerosLike", output)
    return op.make("Fill", op.make("VariableShape", output), op.g.constant(0, like.dtype))


@gradient("Merge", "RefMerge", takes_none=True)
def merge(op: Forward, grad: Tensor, _index_grad: None) -> Gradients:
    """The gradient goes to the input that was taken; for the others it is dead."""
    which = op.outputs[1]
    return [op.make_all("Switch", grad, op.make("Equal", which, port))[1] for port in range(len(op.input_types))]
