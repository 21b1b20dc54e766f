"""Products of sparse matrices by rows, with dense and with sparse ones; sums, transposes, softmax, Cholesky factors."""

from __future__ import annotations

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..checks import require
from ..registry import Construction, Kernel, kernel
from .csr_conversions import dense_of
from .csr_matrix import CSRMatrix, CsrRows, carrying_csr, csr_of, summed


def _turns(node: Construction, operand: str) -> tuple[bool, bool]:
    """Whether an operand is to be transposed, and conjugated as well."""
    adjoint, transpose = (bool(node.attrs[f"{how}_{operand}"]) for how in ("adjoint", "transpose"))
    require(not (adjoint and transpose), f"Only one of adjoint_{operand} and transpose_{operand} may be true.")
    return adjoint or transpose, adjoint


def _turned(matrix: CSRMatrix, turns: tuple[bool, bool]) -> CSRMatrix:
    return matrix.transposed(conjugate=turns[1]) if turns[0] else matrix


@kernel("SparseMatrixMatMul")
def mat_mul(node: Construction) -> Kernel:
    """The product of a sparse matrix with a dense one, dense."""
    turns_a, turns_b = _turns(node, "a"), _turns(node, "b")
    turn_result, conjugate_result = bool(node.attrs["transpose_output"]), bool(node.attrs["conjugate_output"])

    def run(a: Array, b: Array) -> Array:
        left = _turned(csr_of(a, node.input_types[1]), turns_a)
        if b.ndim != len(left.shape):
            raise InvalidArgumentError(f"Ranks of a and b must match, saw: {len(left.shape)} vs. {b.ndim}.")
        right = np.swapaxes(b, -1, -2) if turns_b[0] else b
        right = np.conj(right) if turns_b[1] else right
        if left.shape[-1] != right.shape[-2]:
            raise InvalidArgumentError(
                "Inner product dimensions of A and B do not agree. Shapes are: "
                f"{shape_text(csr_of(a).shape)} vs. {shape_text(b.shape)}"
            )
        require(left.shape[:-2] == right.shape[:-2], "Batch dimensions of a and b must match")
        factors = right.reshape(len(left.parts), *right.shape[-2:])
        result = np.stack([_product(part, factor) for part, factor in zip(left.parts, factors, strict=True)])
        result = result.reshape(*left.shape[:-1], right.shape[-1])
        result = np.swapaxes(result, -1, -2) if turn_result else result
        return np.asarray(np.conj(result) if conjugate_result else result)

    return run


def _product(a: CsrRows, b: Array) -> Array:
    """The rows of `b` that each row of `a` picks, times its values, added up."""
    result = np.zeros((len(a.row_ptrs) - 1, b.shape[1]), b.dtype)
    filled = np.nonzero(np.diff(a.row_ptrs))[0]
    if filled.size:
        result[filled] = np.add.reduceat(a.values[:, None] * b[a.columns], a.row_ptrs[filled], 0)
    return result


@kernel("SparseMatrixSparseMatMul")
def sparse_mat_mul(node: Construction) -> Kernel:
    """The product of two sparse matrices, sparse."""
    turns_a, turns_b, dtype = _turns(node, "a"), _turns(node, "b"), node.attrs["type"]

    def run(a: Array, b: Array) -> Array:
        left, right = _turned(csr_of(a, dtype), turns_a), _turned(csr_of(b, dtype), turns_b)
        require(
            len(left.shape) == len(right.shape) and left.shape[:-2] == right.shape[:-2],
            "Batch dimensions of a and b must match",
        )
        if left.shape[-1] != right.shape[-2]:
            raise InvalidArgumentError(
                "Inner product dimensions of A and B do not agree.  Shapes are: "
                f"{shape_text(csr_of(a).shape)} vs. {shape_text(csr_of(b).shape)}"
            )
        columns = right.shape[-1]
        parts = [_sparse_product(x, y, columns) for x, y in zip(left.parts, right.parts, strict=True)]
        return carrying_csr(left.with_parts(parts, (left.shape[-2], columns)))

    return run


def _sparse_product(a: CsrRows, b: CsrRows, columns: int) -> CsrRows:
    """Every element of `a` meets the row of `b` that its column names; meetings at one place are added up."""
    firsts, lengths = b.row_ptrs[a.columns], np.diff(b.row_ptrs)[a.columns]
    of_a = np.repeat(np.arange(len(a.values)), lengths)
    within = np.arange(len(of_a)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    of_b = firsts[of_a] + within
    rows, places = a.row_numbers[of_a], b.columns[of_b]
    return summed(rows, places, a.values[of_a] * b.values[of_b], len(a.row_ptrs) - 1, columns)


@kernel("SparseMatrixTranspose")
def transpose(node: Construction) -> Kernel:
    """Rows and columns exchanged, conjugate if asked for."""
    conjugate, dtype = bool(node.attrs["conjugate"]), node.attrs["type"]
    return lambda matrix: carrying_csr(csr_of(matrix, dtype).transposed(conjugate=conjugate))


@kernel("SparseMatrixAdd")
def add(node: Construction) -> Kernel:
    """alpha a + beta b."""
    dtype = node.input_types[2]

    def run(a: Array, b: Array, alpha: Array, beta: Array) -> Array:
        for name, factor in (("alpha", alpha), ("beta", beta)):
            if np.ndim(factor) != 0:
                raise InvalidArgumentError(f"{name} must be a scalar, not of shape {shape_text(np.shape(factor))}")
        left, right = csr_of(a, dtype), csr_of(b, dtype)
        return carrying_csr(left.times(alpha).plus(right.times(beta)))

    return run


@kernel("SparseMatrixMul")
def multiply(node: Construction) -> Kernel:
    """The elements of a sparse matrix times a number, or for a batch times a number [batch, 1, 1] for each matrix."""
    dtype = node.input_types[1]

    def run(a: Array, b: Array) -> Array:
        matrix, factors = csr_of(a, dtype), np.asarray(b)
        each = factors.ndim == 3 and factors.shape == (len(matrix.parts), 1, 1)
        if not (factors.ndim == 0 or each):
            raise InvalidArgumentError(f"b must be a scalar or [batch,1,1], not {shape_text(factors.shape)}")
        numbers = np.broadcast_to(factors.reshape(-1), len(matrix.parts))
        parts = [CsrRows(x.row_ptrs, x.columns, x.values * y) for x, y in zip(matrix.parts, numbers, strict=True)]
        return carrying_csr(matrix.with_parts(parts, matrix.shape[-2:]))

    return run


@kernel("SparseMatrixSoftmax")
def softmax(node: Construction) -> Kernel:
    """The softmax of the elements that each row has."""
    dtype = node.attrs["type"]

    def run(logits: Array) -> Array:
        matrix = csr_of(logits, dtype)
        return carrying_csr(matrix.with_parts(map(_row_softmax, matrix.parts), matrix.shape[-2:]))

    return run


def _row_softmax(part: CsrRows) -> CsrRows:
    filled = np.nonzero(np.diff(part.row_ptrs))[0]
    if not filled.size:
        return part
    firsts, lengths = part.row_ptrs[filled], np.diff(part.row_ptrs)[filled]
    exponentials = np.exp(part.values - np.repeat(np.maximum.reduceat(part.values, firsts), lengths))
    totals = np.repeat(np.add.reduceat(exponentials, firsts), lengths)
    return CsrRows(part.row_ptrs, part.columns, exponentials / totals)


@kernel("SparseMatrixSparseCholesky")
def cholesky(node: Construction) -> Kernel:
    """The lower factor of the matrix with rows and columns permuted; its elements are those that are not zero.

    Only the lower triangle is read. The dense factor is computed.
    """
    dtype = node.attrs["type"]

    def run(a: Array, permutation: Array) -> Array:
        matrix = csr_of(a, dtype)
        if matrix.shape[-1] != matrix.shape[-2]:
            raise InvalidArgumentError(f"matrix must be square: {shape_text(matrix.shape)}")
        require(permutation.shape == matrix.shape[:-1], "permutation must have a number for each row")
        inside = bool(((permutation >= 0) & (permutation < matrix.shape[-1])).all())
        require(inside, f"permutation must have numbers of rows, from 0 to {matrix.shape[-1] - 1}")
        dense = dense_of(matrix).reshape(-1, *matrix.shape[-2:])
        orders = permutation.reshape(-1, matrix.shape[-1])
        parts = [_lower_factor(np.tril(x), order) for x, order in zip(dense, orders, strict=True)]
        return carrying_csr(matrix.with_parts(parts, matrix.shape[-2:]))

    return run


def _lower_factor(lower: Array, order: Array) -> CsrRows:
    whole = lower + np.conj(np.tril(lower, -1).T)
    try:
        factor = np.linalg.cholesky(whole[np.ix_(order, order)])
    except np.linalg.LinAlgError:
        raise InvalidArgumentError("Sparse Cholesky factorization failed!") from None
    rows, columns = np.nonzero(factor)
    return CsrRows.of(rows, columns, factor[rows, columns], len(factor))
