"""Kernels that solve linear systems: square, least squares, triangular and banded triangular.

Triangular systems are solved by substitution: by BLAS, or for many small matrices row by row for all of them at once.
Leading axes broadcast for the
triangular ops and must be equal for the others.
"""

from __future__ import annotations

from math import prod

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..blas_threads import one_blas_thread
from ..checks import require
from ..registry import Construction, Kernel, kernel
from .inner_matrices import adjoint, by_matrix, has_nan, require_matrices, require_square
from .lapack import Routine, is_of_lapack, is_small_matrix, routine, solution

_NOT_INVERTIBLE = "Input matrix is not invertible."
_BLOCK, _WIDE = 64, 1 << 10  # rows and columns of a system for one call of BLAS: less than a millisecond


def _require_fitting(matrix: Array, rhs: Array) -> None:
    require_matrices(matrix)
    require_matrices(rhs, 1)
    require(matrix.shape[:-2] == rhs.shape[:-2], "All input tensors must have the same outer dimensions.")
    require(matrix.shape[-2] == rhs.shape[-2], "Input matrix and rhs are incompatible.")


@kernel("MatrixSolve", "BatchMatrixSolve")
@one_blas_thread
def solve(node: Construction) -> Kernel:
    """x with matrix x = rhs, or with the conjugate transpose of the matrix."""
    turned = node.attrs["adjoint"]

    def solved(matrix: Array, rhs: Array) -> Array:
        _require_fitting(matrix, rhs)
        require_square(matrix)
        require(not has_nan(matrix), _NOT_INVERTIBLE)
        if turned:
            matrix = adjoint(matrix)
        if is_small_matrix(matrix) and is_small_matrix(rhs):
            result = solution(matrix, rhs)
        else:
            result = _solution_by_numpy(matrix, rhs)
        if result is None:
            raise InvalidArgumentError(_NOT_INVERTIBLE)
        return result

    return solved


def _solution_by_numpy(matrix: Array, rhs: Array) -> Array | None:
    try:
        return np.linalg.solve(matrix, rhs)
    except np.linalg.LinAlgError:
        return None


@kernel("MatrixSolveLs", "BatchMatrixSolveLs")
@one_blas_thread
def solve_least_squares(node: Construction) -> Kernel:
    """x that minimises |matrix x - rhs|^2 + l2 |x|^2 (`fast`: by normal equations), or the shortest for l2 = 0."""

    def fast(matrix: Array, rhs: Array, l2: float) -> Array:
        tall = matrix.shape[-2] >= matrix.shape[-1]
        turned = adjoint(matrix)
        gram = turned @ matrix if tall else matrix @ turned
        gram = gram + gram.dtype.type(l2) * np.eye(gram.shape[-1], dtype=gram.dtype)
        try:
            factor = np.linalg.cholesky(gram)
        except np.linalg.LinAlgError:
            raise InvalidArgumentError(
                "Input matrix was rank deficient or ill-conditioned. "
                "Try setting fast=False or provide a larger l2_regularizer > 0."
            ) from None
        half = substitute(factor, turned @ rhs if tall else rhs, lower=True)
        whole = substitute(adjoint(factor), half, lower=False)
        return whole if tall else turned @ whole

    def shortest(matrix: Array, rhs: Array) -> Array:
        result = np.empty((*matrix.shape[:-2], matrix.shape[-1], rhs.shape[-1]), matrix.dtype)
        return by_matrix(_least_squares, result, matrix, rhs)

    def solved(matrix: Array, rhs: Array, l2_regularizer: Array) -> Array:
        _require_fitting(matrix, rhs)
        if l2_regularizer.ndim != 0:
            raise InvalidArgumentError(f"l2_regularizer must be scalar, got {shape_text(l2_regularizer.shape)}")
        require(bool(l2_regularizer >= 0), "l2_regularizer must be >= 0.")
        return fast(matrix, rhs, float(l2_regularizer)) if node.attrs["fast"] else shortest(matrix, rhs)

    return solved


def _least_squares(matrix: Array, rhs: Array) -> Array:
    """The shortest x that brings matrix @ x closest to rhs; NaN where the numbers are not finite."""
    if not (np.isfinite(matrix).all() and np.isfinite(rhs).all()):
        return np.full((matrix.shape[1], rhs.shape[1]), np.nan, matrix.dtype)
    return np.asarray(np.linalg.lstsq(matrix, rhs, rcond=None)[0])


def substitute(matrix: Array, rhs: Array, *, lower: bool) -> Array:
    """x [..., n, k] with T x = rhs, T being a triangle of each matrix [..., n, n]; leading axes broadcast.

    A zero on the diagonal gives infinities and NaN, as in IEEE arithmetic.
    """
    is_of_blas = is_of_lapack(rhs.dtype)
    if matrix.ndim == rhs.ndim == 2 and is_of_blas:
        return _substitute_blocks(matrix, rhs, lower)
    leading = np.broadcast_shapes(matrix.shape[:-2], rhs.shape[:-2])
    if prod(leading) > matrix.shape[-1] or not is_of_blas:
        return _substitute_rows(matrix, rhs, leading, lower)
    matrices = np.broadcast_to(matrix, leading + matrix.shape[-2:])
    sides = np.broadcast_to(rhs, leading + rhs.shape[-2:])
    return by_matrix(lambda a, b: _substitute_blocks(a, b, lower), np.empty(sides.shape, rhs.dtype), matrices, sides)


def _substitute_rows(matrix: Array, rhs: Array, leading: tuple[int, ...], lower: bool) -> Array:
    """Row by row for all matrices at once, for many matrices of a few rows."""
    rows = matrix.shape[-1]
    x = np.zeros((*leading, rows, rhs.shape[-1]), rhs.dtype)
    for i in range(rows) if lower else range(rows - 1, -1, -1):
        known = slice(0, i) if lower else slice(i + 1, rows)
        rest = rhs[..., i, :] - (matrix[..., i : i + 1, known] @ x[..., known, :])[..., 0, :]
        x[..., i, :] = rest / matrix[..., i, i, None]
    return x


def _substitute_blocks(matrix: Array, rhs: Array, lower: bool) -> Array:
    """One system by BLAS, block by block: its calls hold Python's lock, which numpy's products do not."""
    rows, columns = rhs.shape
    if not rhs.size:
        return rhs.copy()
    solve = routine("trsm", rhs.dtype)
    if rows <= _BLOCK and columns <= _WIDE:
        return _substitute_block(solve, matrix, rhs, lower)
    x = np.empty(rhs.shape, rhs.dtype)
    starts = range(0, rows, _BLOCK)
    for first in starts if lower else reversed(starts):
        block = slice(first, min(first + _BLOCK, rows))
        known = slice(0, first) if lower else slice(block.stop, rows)
        rest = rhs[block] - matrix[block, known] @ x[known]
        for column in range(0, columns, _WIDE):
            some = slice(column, column + _WIDE)
            x[block, some] = _substitute_block(solve, matrix[block, block], rest[:, some], lower)
    return x


def _substitute_block(solve: Routine, matrix: Array, rhs: Array, lower: bool) -> Array:
    """T x = rhs; BLAS reads a triangle that lies row by row as the transpose of the other one, without a copy.

    As x^T T^T = rhs^T nothing would be copied, but for float32 that spreads NaN to rows which do not depend on them.
    """
    if matrix.flags.f_contiguous:
        solved = solve(1, matrix, rhs, lower=lower)
    else:
        solved = solve(1, matrix.T, rhs, lower=not lower, trans_a=1)
    return np.ascontiguousarray(solved)


@kernel("MatrixTriangularSolve", "BatchMatrixTriangularSolve")
@one_blas_thread
def solve_triangular(node: Construction) -> Kernel:
    """x with T x = rhs, T being one triangle of the matrix, or its conjugate transpose."""
    lower, turned = node.attrs["lower"], node.attrs["adjoint"]

    def solved(matrix: Array, rhs: Array) -> Array:
        require_matrices(matrix)
        require_matrices(rhs, 1)
        if matrix.shape[-1] != rhs.shape[-2]:
            flags = f"{int(lower)} {int(turned)}"
            raise InvalidArgumentError(
                f"In[0] mismatch In[1] shape: {matrix.shape[-1]} vs. {rhs.shape[-2]}: "
                f"{shape_text(matrix.shape)} {shape_text(rhs.shape)} {flags}"
            )
        require(matrix.shape[-1] == matrix.shape[-2], "In[0] matrices in the last two dimensions must be square")
        return substitute(adjoint(matrix) if turned else matrix, rhs, lower=lower != turned)

    return solved


def _from_bands(bands: Array, lower: bool) -> Array:
    """Square matrices [..., n, n] from bands [..., k, n]: row i of a band holds its element of row i of the matrix.

    Lower: band 0 is the diagonal, then the subdiagonals. Upper: the last band is the diagonal, above it superdiagonals.
    """
    count, size = bands.shape[-2:]
    result = np.zeros((*bands.shape[:-2], size, size), bands.dtype)
    for offset in range(min(count, size)):
        row = np.arange(offset, size) if lower else np.arange(size - offset)
        column = row - offset if lower else row + offset
        result[..., row, column] = bands[..., offset if lower else count - 1 - offset, row]
    return result


@kernel("BandedTriangularSolve")
@one_blas_thread
def solve_banded(node: Construction) -> Kernel:
    """x with T x = rhs, T being triangular and given by its bands, or its conjugate transpose."""
    lower, turned = node.attrs["lower"], node.attrs["adjoint"]

    def solved(bands: Array, rhs: Array) -> Array:
        require_matrices(bands)
        require_matrices(rhs, 1)
        if bands.shape[-2] <= 0:
            raise InvalidArgumentError(f"In[0] must not be an empty tensor: {shape_text(bands.shape)}")
        require(bands.shape[-1] == rhs.shape[-2], "Input matrix and rhs are incompatible.")
        diagonal = bands[..., 0 if lower else -1, :]
        require(bool((diagonal != 0).all()), _NOT_INVERTIBLE)
        matrix = _from_bands(bands, lower)
        return substitute(adjoint(matrix) if turned else matrix, rhs, lower=lower != turned)

    return solved
