"""Gradients of products of sparse matrices by rows, and of their transposes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....errors import UnimplementedError
from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...analysis.gradient_support import conjugate
from ..linalg.linalg_gradients import adjoint, transpose as transpose_of
from .csr_conversions_gradients import elements_of

if TYPE_CHECKING:
    from ...builder.handles import Tensor


@gradient("SparseMatrixTranspose")
def transpose(op: Forward, grad: Tensor) -> Gradients:
    """The transpose of the gradient."""
    return (op.make("SparseMatrixTranspose", grad, **op.own_attrs("conjugate", "type")),)


@gradient("SparseMatrixMatMul")
def mat_mul(op: Forward, grad: Tensor) -> Gradients:
    """For the dense factor a product with the sparse one; for element (i, j) of that, row i of g by row j of b.

    UnimplementedError if the product is transposed or conjugate.
    """
    if op.attrs["transpose_output"] or op.attrs["conjugate_output"]:
        raise UnimplementedError("gradient of SparseMatrixMatMul with transpose_output or conjugate_output")
    a, b = op.inputs
    adjoint_a, adjoint_b = bool(op.attrs["adjoint_a"]), bool(op.attrs["adjoint_b"])
    turns_a, turns_b = adjoint_a or bool(op.attrs["transpose_a"]), adjoint_b or bool(op.attrs["transpose_b"])
    right = _turned(op, b, adjoint_b) if turns_b else b
    # With a' and b' for the factors as they are multiplied: d b' = a'^H g, and a^T g = conj(a^H conj(g)).
    if turns_a and not adjoint_a:
        to_right = conjugate(op, op.make("SparseMatrixMatMul", a, conjugate(op, grad)))
    else:
        to_right = op.make("SparseMatrixMatMul", a, grad, adjoint_a=not turns_a)
    to_b = _turned(op, to_right, adjoint_b) if turns_b else to_right
    return _to_sparse(op, a, grad, right, turns_a, adjoint_a), to_b


def _to_sparse(op: Forward, a: Tensor, grad: Tensor, right: Tensor, turns: bool, is_adjoint: bool) -> Tensor:
    """The matrix with the elements of d a' = g b'^H where `a` has some."""
    indices, shape = elements_of(op, a, op.input_types[1])
    rank = op.make("Size", shape)
    batch = op.make("Range", 0, rank - 2, 1)
    rows, columns = (
        op.make("GatherV2", indices, op.make("ConcatV2", [batch, op.make("Reshape", rank - back, [1])], 0), 1)
        for back in (2, 1)
    )
    first, second = (columns, rows) if turns else (rows, columns)
    factors = op.make("GatherNd", grad, first), conjugate(op, op.make("GatherNd", right, second))
    values = op.make("Sum", factors[0] * factors[1], -1)
    return op.make("SparseTensorToCSRSparseMatrix", indices, conjugate(op, values) if is_adjoint else values, shape)


def _turned(op: Forward, x: Tensor, is_adjoint: bool) -> Tensor:
    return adjoint(op, x) if is_adjoint else transpose_of(op, x)
