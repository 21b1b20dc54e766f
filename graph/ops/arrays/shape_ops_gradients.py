"""Gradients of ops that change shapes, permute axes and repeat elements.

The gradient gets the input's shape; gradients of repeated elements are summed. Shapes, axes and permutations get none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...analysis.gradient_support import rank_of, reshape_like, shape_of, unstretch
from ...dtypes import DataType

if TYPE_CHECKING:
    from ...builder.handles import Tensor


@gradient("Reshape")
def reshape(op: Forward, grad: Tensor) -> Gradients:
    return reshape_like(op, grad, 0), None


@gradient("ExpandDims")
def expand_dims(op: Forward, grad: Tensor) -> Gradients:
    return reshape_like(op, grad, 0), None


@gradient("Squeeze")
def squeeze(op: Forward, grad: Tensor) -> Gradients:
    return (reshape_like(op, grad, 0),)


@gradient("Transpose", "ConjugateTranspose")
def transpose(op: Forward, grad: Tensor) -> Gradients:
    """The gradient under the inverse permutation."""
    order = op.constant_input(1)
    if order is not None:
        back = op.g.constant(order.argsort().tolist(), op.input_types[1])
    else:
        back = op.make("InvertPermutation", op.inputs[1])
    return op.make(op.op, grad, back), None


@gradient("BroadcastTo")
def broadcast_to(op: Forward, grad: Tensor) -> Gradients:
    """The sum over the axes that were stretched."""
    return unstretch(op, grad, 0), None


@gradient("Fill")
def fill(op: Forward, grad: Tensor) -> Gradients:
    """The sum of all elements, for the value."""
    every = op.make("Reshape", grad, op.g.constant([-1], DataType.INT32))
    return None, op.make("Sum", every, op.g.constant(0, DataType.INT32))


@gradient("Tile")
def tile(op: Forward, grad: Tensor) -> Gradients:
    """The sum over all copies: every size is split into (copies, size), and the sum is over the copies."""
    times = op.make("Cast", op.inputs[1], DstT=DataType.INT32)
    pairs = op.make("Pack", [times, shape_of(op, 0)], axis=1)
    split = op.make("Reshape", grad, op.make("Reshape", pairs, op.g.constant([-1], DataType.INT32)))
    axes = op.make("Range", 0, rank_of(op, 0) * 2, 2)
    return reshape_like(op, op.make("Sum", split, axes), 0), None
