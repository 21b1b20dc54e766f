"""Kernels that factorise matrices [..., m, n]: Cholesky, QR, LU, eigenvalues, singular values.

LAPACK does the work in the precision of the input (half types in float32), so factors that are unique only up to signs
have LAPACK's signs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.dtypes import Array, numpy_dtype
from ..blas_threads import one_blas_thread
from ..checks import require
from ..half_types import in_float32
from ..registry import Construction, Kernel, kernel
from .inner_matrices import NOT_INVERTIBLE, adjoint, by_matrix, has_nan, require_matrices, require_square
from .lapack import cholesky_factor, eigenvectors, is_small_matrix, orthogonal_factors, singular_values
from .solvers import substitute


def _cholesky(x: Array) -> Array:
    factor = cholesky_factor(x) if is_small_matrix(x) else _cholesky_by_numpy(x)
    return np.tril(np.full_like(x, np.nan)) if factor is None else factor


def _cholesky_by_numpy(x: Array) -> Array | None:
    try:
        return np.linalg.cholesky(x)
    except np.linalg.LinAlgError:
        return None


@kernel("Cholesky", "BatchCholesky")
@one_blas_thread
def cholesky(node: Construction) -> Kernel:
    """The lower triangular L of x = L L^H, from the lower triangle of x; NaN where x is not positive definite."""

    def factor(x: Array) -> Array:
        require_square(x)
        return _cholesky(x) if x.ndim == 2 else by_matrix(_cholesky, np.empty_like(x), x)

    return factor


def _inverse_of_triangle(factor: Array) -> Array:
    """The inverse of lower triangles, with infinities and NaN where one has a zero on its diagonal."""
    if (np.diagonal(factor, axis1=-2, axis2=-1) == 0).any():
        units = np.broadcast_to(np.eye(factor.shape[-1], dtype=factor.dtype), factor.shape)
        return substitute(factor, units, lower=True)
    return np.linalg.inv(factor)


@kernel("CholeskyGrad", "BatchCholeskyGrad")
@one_blas_thread
def cholesky_gradient(node: Construction) -> Kernel:
    """The gradient of x from that of its factor L.

    Half of S + S^H with S = L^-H P(L^H grad) L^-1, where P keeps the lower triangle and halves the diagonal
    (I. Murray, Differentiation of the Cholesky decomposition, 2016, equation 10).
    """

    def pulled_back(factor: Array, grad: Array) -> Any:
        require_square(factor)
        require_square(grad, 1)
        factor = np.tril(factor)
        inner = np.tril(adjoint(factor) @ np.tril(grad))
        at = np.arange(factor.shape[-1])
        inner[..., at, at] /= 2
        inverse_factor = _inverse_of_triangle(factor)
        whole = adjoint(inverse_factor) @ inner @ inverse_factor
        return (whole + adjoint(whole)) / 2

    return in_float32(pulled_back, node.output_types[0])


@kernel("Qr")
@one_blas_thread
def qr(node: Construction) -> Kernel:
    """Orthonormal q and upper triangular r of each matrix; q square under full_matrices."""
    full = node.attrs["full_matrices"]
    mode: Any = "complete" if full else "reduced"

    def factors(x: Array) -> tuple[Array, Array]:
        require_matrices(x)
        if is_small_matrix(x):
            return orthogonal_factors(x, full=full)
        q, r = np.linalg.qr(x, mode)
        return q, r

    return in_float32(factors, node.output_types[0])


@kernel("Svd", "BatchSvd")
@one_blas_thread
def svd(node: Construction) -> Kernel:
    """Singular values in descending order, and u and v of x = u diag(s) v^H unless compute_uv is false."""
    full, vectors = node.attrs["full_matrices"], node.attrs["compute_uv"]
    nothing = np.zeros(0, numpy_dtype(node.output_types[1]))

    def undecided(x: Array) -> tuple[Array, Array, Array]:
        """NaN everywhere: numpy gives it for some matrices of NaN, and an error for others."""
        rows, columns = x.shape[-2:]
        least = min(rows, columns)
        wide = (rows, columns) if full else (least, least)
        nans = [
            np.full((*x.shape[:-2], *sizes), np.nan, dtype)
            for sizes, dtype in (((least,), nothing.dtype), ((rows, wide[0]), x.dtype), ((columns, wide[1]), x.dtype))
        ]
        return (nans[0], nans[1], nans[2]) if vectors else (nans[0], nothing, nothing)

    def decomposed(x: Array) -> tuple[Array, Array, Array]:
        require_matrices(x)
        if has_nan(x):
            return undecided(x)
        found = singular_values(x, full=full, vectors=vectors) if is_small_matrix(x) else None
        if not vectors:
            s = np.linalg.svd(x, compute_uv=False) if found is None else found[1]
            return s.astype(nothing.dtype), nothing, nothing
        u, s, vh = np.linalg.svd(x, full_matrices=full) if found is None else found
        return s.astype(nothing.dtype), u, adjoint(vh)

    return decomposed


@kernel("SelfAdjointEigV2", "BatchSelfAdjointEigV2")
@one_blas_thread
def self_adjoint_eigen(node: Construction) -> Kernel:
    """Eigenvalues in ascending order, and eigenvectors as columns; only lower triangles of the input are read."""
    nothing, wants_vectors = np.zeros(0, numpy_dtype(node.output_types[1])), node.attrs["compute_v"]

    def decomposed(x: Array) -> tuple[Array, Array]:
        require_square(x)
        failed = "Self-adjoint eigen decomposition was not successful. The input might not be valid."
        require(not has_nan(x), failed)
        try:
            found = eigenvectors(x, vectors=wants_vectors) if is_small_matrix(x) else None
            if not wants_vectors:
                values = np.linalg.eigvalsh(x) if found is None else found[0]
                return values.astype(nothing.dtype), nothing
            values, vectors = np.linalg.eigh(x) if found is None else found
        except np.linalg.LinAlgError:
            raise InvalidArgumentError(failed) from None
        return values.astype(nothing.dtype), vectors

    return decomposed


@kernel("SelfAdjointEig", "BatchSelfAdjointEig")
@one_blas_thread
def self_adjoint_eigen_as_one(node: Construction) -> Kernel:
    """Eigenvalues and eigenvectors in one tensor [..., n + 1, n]: a row of values above the columns of vectors."""
    failed = "Self Adjoint Eigen decomposition wasnot successful. The input might not be valid."

    def decomposed(x: Array) -> Array:
        require_square(x)
        require(not has_nan(x), failed)
        try:
            values, vectors = np.linalg.eigh(x)
        except np.linalg.LinAlgError:
            raise InvalidArgumentError(failed) from None
        return np.concatenate([values[..., None, :], vectors], -2)

    return decomposed


@kernel("Eig")
@one_blas_thread
def eigen(node: Construction) -> Kernel:
    """Complex eigenvalues, and eigenvectors as columns of norm 1 unless compute_v is false."""
    nothing = np.zeros(0, numpy_dtype(node.output_types[0]))

    def decomposed(x: Array) -> tuple[Array, Array]:
        require_square(x)
        try:
            if not node.attrs["compute_v"]:
                return np.linalg.eigvals(x).astype(nothing.dtype), nothing
            values, vectors = np.linalg.eig(x)
        except np.linalg.LinAlgError:
            raise InvalidArgumentError(
                "Eigen decomposition was not successful. The input might not be valid."
            ) from None
        return values.astype(nothing.dtype), vectors.astype(nothing.dtype)

    return decomposed


@kernel("Lu")
def lu(node: Construction) -> Kernel:
    """L (below the unit diagonal) and U of each row-permuted matrix in one matrix, and the row order as indices."""
    index_type = numpy_dtype(node.output_types[1])

    def factors(x: Array) -> tuple[Array, Array]:
        require(x.ndim >= 2, f"Input tensor must have rank >= 2, got {x.ndim}")
        require_square(x)
        factored, rows = np.empty_like(x), np.empty(x.shape[:-1], index_type)
        for index in np.ndindex(x.shape[:-2]):
            factored[index], rows[index] = _factor(x[index])
        return factored, rows

    return factors


def _factor(matrix: Array) -> tuple[Array, Array]:
    """Gaussian elimination with the pivot of largest absolute value, column by column."""
    work, rows = np.array(matrix), np.arange(len(matrix))
    for k in range(len(work)):
        pivot = k + int(np.abs(work[k:, k]).argmax())
        require(bool(abs(work[pivot, k]) > 0), NOT_INVERTIBLE)
        if pivot != k:
            work[[k, pivot]], rows[[k, pivot]] = work[[pivot, k]], rows[[pivot, k]]
        work[k + 1 :, k] /= work[k, k]
        work[k + 1 :, k + 1 :] -= work[k + 1 :, k : k + 1] * work[k, k + 1 :]
    return work, rows
