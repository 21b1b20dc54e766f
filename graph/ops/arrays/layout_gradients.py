"""Gradients of ops that rearrange elements: each is undone by the rearrangement back.

Flows in: what flows back into the rearranged tensor. Flows out: what flows back into the tensor; nothing for shapes,
axes, permutations and sizes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...analysis.gradient_support import rank_of, reshape_like, shape_of, unstretch, zeros_like
from ...dtypes import DataType

if TYPE_CHECKING:
    from ...builder.handles import Tensor


@gradient("Reshape")
def reshape(op: Forward, grad: Tensor) -> Gradients:
    """The shape before."""
    return reshape_like(op, grad, 0), None


@gradient("ExpandDims")
def expand_dims(op: Forward, grad: Tensor) -> Gradients:
    """The shape before."""
    return reshape_like(op, grad, 0), None


@gradient("Squeeze")
def squeeze(op: Forward, grad: Tensor) -> Gradients:
    """The shape before."""
    return (reshape_like(op, grad, 0),)


@gradient("Transpose", "ConjugateTranspose")
def transpose(op: Forward, grad: Tensor) -> Gradients:
    """The inverse permutation."""
    order = op.constant_input(1)
    if order is not None:
        back = op.g.constant(order.argsort().tolist(), op.input_types[1])
    else:
        back = op.make("InvertPermutation", op.inputs[1])
    return op.make(op.op, grad, back), None


@gradient("Reverse", "ReverseV2")
def reverse(op: Forward, grad: Tensor) -> Gradients:
    """Reversed again."""
    return op.make(op.op, grad, op.inputs[1]), None


@gradient("ReverseSequence")
def reverse_sequence(op: Forward, grad: Tensor) -> Gradients:
    """Reversed again."""
    return op.make("ReverseSequence", grad, op.inputs[1], **op.own_attrs("seq_dim", "batch_dim")), None


@gradient("Roll")
def roll(op: Forward, grad: Tensor) -> Gradients:
    """Rolled back."""
    return op.make("Roll", grad, -op.inputs[1], op.inputs[2]), None, None


@gradient("SpaceToDepth")
def space_to_depth(op: Forward, grad: Tensor) -> Gradients:
    """Back."""
    return (op.make("DepthToSpace", grad, **op.own_attrs("block_size", "data_format")),)


@gradient("DepthToSpace")
def depth_to_space(op: Forward, grad: Tensor) -> Gradients:
    """Back."""
    return (op.make("SpaceToDepth", grad, **op.own_attrs("block_size", "data_format")),)


@gradient("SpaceToBatch")
def space_to_batch(op: Forward, grad: Tensor) -> Gradients:
    """Back, what was padded cropped."""
    return op.make("BatchToSpace", grad, op.inputs[1], **op.own_attrs("block_size")), None


@gradient("BatchToSpace")
def batch_to_space(op: Forward, grad: Tensor) -> Gradients:
    """Back, what was cropped padded."""
    return op.make("SpaceToBatch", grad, op.inputs[1], **op.own_attrs("block_size")), None


@gradient("SpaceToBatchND")
def space_to_batch_nd(op: Forward, grad: Tensor) -> Gradients:
    """Back, what was padded cropped."""
    return op.make("BatchToSpaceND", grad, *op.inputs[1:]), None, None


@gradient("BatchToSpaceND")
def batch_to_space_nd(op: Forward, grad: Tensor) -> Gradients:
    """Back, what was cropped padded."""
    return op.make("SpaceToBatchND", grad, *op.inputs[1:]), None, None


@gradient("BroadcastTo")
def broadcast_to(op: Forward, grad: Tensor) -> Gradients:
    """The sum over the axes that were stretched."""
    return unstretch(op, grad, 0), None


@gradient("Fill")
def fill(op: Forward, grad: Tensor) -> Gradients:
    """The sum of all."""
    every = op.make("Reshape", grad, op.g.constant([-1], DataType.INT32))
    return None, op.make("Sum", every, op.g.constant(0, DataType.INT32))


@gradient("Tile")
def tile(op: Forward, grad: Tensor) -> Gradients:
    """The sum over all copies: every size is split into copies and size, and summed over the former."""
    times = op.make("Cast", op.inputs[1], DstT=DataType.INT32)
    pairs = op.make("Pack", [times, shape_of(op, 0)], axis=1)
    split = op.make("Reshape", grad, op.make("Reshape", pairs, op.g.constant([-1], DataType.INT32)))
    axes = op.make("Range", 0, rank_of(op, 0) * 2, 2)
    return reshape_like(op, op.make("Sum", split, axes), 0), None


@gradient("MatrixBandPart")
def matrix_band_part(op: Forward, grad: Tensor) -> Gradients:
    """The same band."""
    return op.make("MatrixBandPart", grad, *op.inputs[1:]), None, None


# Diagonals of tensors and matrices


@gradient("Diag")
def diag(op: Forward, grad: Tensor) -> Gradients:
    """The diagonal."""
    return (op.make("DiagPart", grad),)


@gradient("DiagPart")
def diag_part(op: Forward, grad: Tensor) -> Gradients:
    """Zeros but for the diagonal."""
    return (op.make("Diag", grad),)


@gradient("MatrixDiag")
def matrix_diag(op: Forward, grad: Tensor) -> Gradients:
    """The diagonal of each matrix."""
    return (op.make("MatrixDiagPart", grad),)


@gradient("MatrixDiagPart")
def matrix_diag_part(op: Forward, grad: Tensor) -> Gradients:
    """Zeros but for the diagonal."""
    return (op.make("MatrixSetDiag", zeros_like(op, 0), grad),)


@gradient("MatrixSetDiag")
def matrix_set_diag(op: Forward, grad: Tensor) -> Gradients:
    """The diagonal to the diagonal, all else to the matrix."""
    return op.make("MatrixSetDiag", grad, zeros_like(op, 1)), op.make("MatrixDiagPart", grad)


def _part(op: Forward, grad: Tensor, k: Tensor) -> Tensor:
    nothing = op.g.constant(0, grad.dtype)
    version = op.op[-2:]
    return op.make(f"MatrixDiagPart{version}", grad, k, nothing, **op.own_attrs("align"))


@gradient("MatrixDiagV2", "MatrixDiagV3")
def matrix_diag_v3(op: Forward, grad: Tensor) -> Gradients:
    """The diagonals."""
    return _part(op, grad, op.inputs[1]), None, None, None, None


@gradient("MatrixDiagPartV2", "MatrixDiagPartV3")
def matrix_diag_part_v3(op: Forward, grad: Tensor) -> Gradients:
    """Zeros but for the diagonals."""
    version = op.op[-2:]
    dx = op.make(f"MatrixSetDiag{version}", zeros_like(op, 0), grad, op.inputs[1], **op.own_attrs("align"))
    return dx, None, None


@gradient("MatrixSetDiagV2", "MatrixSetDiagV3")
def matrix_set_diag_v3(op: Forward, grad: Tensor) -> Gradients:
    """The diagonals to the diagonals, all else to the matrix."""
    k = op.inputs[2]
    dx = op.make(op.op, grad, zeros_like(op, 1), k, **op.own_attrs("align"))
    return dx, _part(op, grad, k), None
