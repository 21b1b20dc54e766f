"""Kernels on matrices [..., m, n]: inverse, determinants, square root and logarithm.

LAPACK does the work in the precision of the input (half types in float32).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.dtypes import Array, numpy_dtype
from ..blas_threads import one_blas_thread
from ..half_types import in_float32
from ..registry import Construction, Kernel, kernel
from .inner_matrices import NOT_INVERTIBLE, adjoint, by_matrix, has_nan, require_square, scipy_linalg
from .lapack import is_small_matrix, solution


@kernel("MatrixInverse", "BatchMatrixInverse")
@one_blas_thread
def inverse(node: Construction) -> Kernel:
    """The inverse of each square matrix, or of its conjugate transpose."""
    turned = node.attrs["adjoint"]

    def inverted(x: Array) -> Array:
        require_square(x)
        if turned:
            x = adjoint(x)
        if is_small_matrix(x):
            result = solution(x, np.eye(len(x), dtype=x.dtype))
        else:
            result = _inverse_by_numpy(x)
        if result is None or has_nan(result):
            raise InvalidArgumentError(NOT_INVERTIBLE)
        return result

    return in_float32(inverted, node.output_types[0])


def _inverse_by_numpy(x: Array) -> Array | None:
    try:
        return np.linalg.inv(x)
    except np.linalg.LinAlgError:
        return None


@kernel("MatrixDeterminant", "BatchMatrixDeterminant")
@one_blas_thread
def determinant(node: Construction) -> Kernel:
    """The determinant of each square matrix; 1 for an empty one."""

    def of_square(x: Array) -> Any:
        require_square(x)
        return np.linalg.det(x)

    return of_square


@kernel("LogMatrixDeterminant")
@one_blas_thread
def log_determinant(node: Construction) -> Kernel:
    """Sign (or phase) and logarithm of the absolute value of each determinant: 0 and -inf for a singular matrix."""
    dtype = numpy_dtype(node.output_types[1])

    def of_square(x: Array) -> tuple[Any, Any]:
        require_square(x)
        sign, logarithm = np.linalg.slogdet(x)
        return np.where(np.isnan(logarithm), np.nan, sign).astype(dtype), logarithm.astype(dtype)

    return of_square


def _quietly(function: Callable[[Array], Any], matrix: Array) -> Array:
    """A scipy function without its warnings: NaN or lost digits in the result show the same."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(function(matrix))


@kernel("MatrixSquareRoot")
@one_blas_thread
def square_root(node: Construction) -> Kernel:
    """The principal square root of each invertible matrix; NaN if it is not of the op's type."""
    dtype = numpy_dtype(node.output_types[0])
    sqrtm = scipy_linalg("sqrtm")

    def root(matrix: Array) -> Array:
        if not matrix.size:
            return matrix
        wide = matrix.astype(np.complex128)
        if not np.isfinite(wide).all() or np.linalg.matrix_rank(wide) < len(wide):
            return np.full_like(matrix, np.nan)
        result = _quietly(sqrtm, wide)
        if dtype.kind == "c":
            return result.astype(dtype)
        real = bool(np.abs(result.imag).max() <= 1e-6 * np.abs(result).max())
        return result.real.astype(dtype) if real else np.full_like(matrix, np.nan)

    def of_square(x: Array) -> Array:
        require_square(x)
        return by_matrix(root, np.empty_like(x), x)

    return of_square


@kernel("MatrixExponential")
def exponential(node: Construction) -> Kernel:
    """The exponential of each matrix; an op of graphs before version 27."""
    expm = scipy_linalg("expm")

    def of_square(x: Array) -> Array:
        require_square(x)
        return by_matrix(expm, np.empty_like(x), x)

    return of_square


@kernel("MatrixLogarithm")
def logarithm(node: Construction) -> Kernel:
    """The principal logarithm of each complex matrix."""
    logm = scipy_linalg("logm")

    def of_matrix(matrix: Array) -> Array:
        if not np.isfinite(matrix).all():
            return np.full_like(matrix, np.nan)
        return _quietly(logm, matrix.astype(np.complex128)) if matrix.size else matrix

    def of_square(x: Array) -> Array:
        require_square(x)
        return by_matrix(of_matrix, np.empty_like(x), x)

    return of_square
