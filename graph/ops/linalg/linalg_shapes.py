"""Shape functions of linear algebra on matrices [..., m, n], and of linear solvers.

Sizes that must agree are merged, so that one known size gives the other.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.shape_functions import (
    ShapeContext,
    broadcast,
    merge,
    merge_dims,
    scalar,
    shape_fn,
    unknown,
    with_rank_at_least,
)
from ...dtypes import Shape

Sizes = tuple[int | None, ...]


def _matrices(shape: Shape) -> tuple[Shape, int | None, int | None]:
    """Leading shape, rows and columns; the leading shape is None where the rank is unknown."""
    known = with_rank_at_least(shape, 2)
    return (None, None, None) if known is None else (known[:-2], known[-2], known[-1])


def _square(shape: Shape) -> tuple[Shape, int | None]:
    leading, rows, columns = _matrices(shape)
    return leading, merge_dims(rows, columns)


def _join(leading: Shape, *inner: int | None) -> Shape:
    return None if leading is None else (*leading, *inner)


@shape_fn(
    "MatrixInverse",
    "BatchMatrixInverse",
    "Cholesky",
    "BatchCholesky",
    "MatrixSquareRoot",
    "MatrixLogarithm",
    "MatrixExponential",
)
def square(c: ShapeContext) -> Sequence[Shape]:
    """The input's shape, whose matrices are square."""
    leading, size = _square(c.inputs[0])
    return (_join(leading, size, size),)


@shape_fn("CholeskyGrad", "BatchCholeskyGrad")
def cholesky_gradient(c: ShapeContext) -> Sequence[Shape]:
    leading, size = _square(c.inputs[0])
    return (_join(leading, size, size),)


@shape_fn("MatrixDeterminant", "BatchMatrixDeterminant", "LogMatrixDeterminant")
def determinant(c: ShapeContext) -> Sequence[Shape]:
    """One number per matrix, for each output."""
    leading, _ = _square(c.inputs[0])
    return (leading,) * len(c.output_types)


def _smaller(a: int | None, b: int | None) -> int | None:
    return 0 if 0 in (a, b) else None if a is None or b is None else min(a, b)


@shape_fn("Qr")
def qr(c: ShapeContext) -> Sequence[Shape]:
    """q [..., m, p] and r [..., p, n], p being m or, for reduced factors, the smaller of m and n."""
    leading, rows, columns = _matrices(c.inputs[0])
    inner = rows if c.attrs["full_matrices"] else _smaller(rows, columns)
    return _join(leading, rows, inner), _join(leading, inner, columns)


@shape_fn("Svd", "BatchSvd")
def svd(c: ShapeContext) -> Sequence[Shape]:
    """s [..., p], u [..., m, m or p] and v [..., n, n or p], p = min(m, n); u and v are empty if not computed."""
    leading, rows, columns = _matrices(c.inputs[0])
    least = _smaller(rows, columns)
    values = _join(leading, least)
    if not c.attrs["compute_uv"]:
        return values, (0,), (0,)
    if c.attrs["full_matrices"]:
        return values, _join(leading, rows, rows), _join(leading, columns, columns)
    return values, _join(leading, rows, least), _join(leading, columns, least)


@shape_fn("SelfAdjointEigV2", "BatchSelfAdjointEigV2", "Eig")
def eigen(c: ShapeContext) -> Sequence[Shape]:
    """Eigenvalues [..., n] and eigenvectors [..., n, n]; empty vectors if not computed."""
    leading, size = _square(c.inputs[0])
    return _join(leading, size), _join(leading, size, size) if c.attrs["compute_v"] else (0,)


@shape_fn("SelfAdjointEig")
def eigen_as_one(c: ShapeContext) -> Sequence[Shape]:
    """[..., n + 1, n]: the eigenvalues above the eigenvectors."""
    leading, size = _square(c.inputs[0])
    return (_join(leading, None if size is None else size + 1, size),)


@shape_fn("Lu")
def lu(c: ShapeContext) -> Sequence[Shape]:
    """Both triangles [..., n, n] and the row order [..., n]."""
    leading, size = _square(c.inputs[0])
    return _join(leading, size, size), _join(leading, size)


@shape_fn("MatrixSolve", "BatchMatrixSolve")
def solve(c: ShapeContext) -> Sequence[Shape]:
    """[..., n, k] for matrices [..., n, n] and right-hand sides [..., n, k]."""
    leading, size = _square(c.inputs[0])
    rhs_leading, rows, count = _matrices(c.inputs[1])
    return (_join(merge(leading, rhs_leading), merge_dims(size, rows), count),)


@shape_fn("MatrixSolveLs", "BatchMatrixSolveLs")
def solve_least_squares(c: ShapeContext) -> Sequence[Shape]:
    """[..., n, k] for matrices [..., m, n] and right-hand sides [..., m, k]."""
    leading, rows, columns = _matrices(c.inputs[0])
    rhs_leading, rhs_rows, count = _matrices(c.inputs[1])
    merge_dims(rows, rhs_rows)
    return (_join(merge(leading, rhs_leading), columns, count),)


@shape_fn("MatrixTriangularSolve", "BatchMatrixTriangularSolve")
def solve_triangular(c: ShapeContext) -> Sequence[Shape]:
    """[..., n, k], the leading axes broadcast."""
    leading, size = _square(c.inputs[0])
    rhs_leading, rows, count = _matrices(c.inputs[1])
    return (_join(broadcast(leading, rhs_leading), merge_dims(size, rows), count),)


@shape_fn("BandedTriangularSolve")
def solve_banded(c: ShapeContext) -> Sequence[Shape]:
    """[..., n, k] for bands [..., b, n], the leading axes broadcast."""
    leading, _, size = _matrices(c.inputs[0])
    rhs_leading, rows, count = _matrices(c.inputs[1])
    return (_join(broadcast(leading, rhs_leading), merge_dims(size, rows), count),)


@shape_fn("TridiagonalSolve")
def solve_tridiagonal(c: ShapeContext) -> Sequence[Shape]:
    """The shape of the right-hand sides [..., n, k], for diagonals [..., 3, n]."""
    leading, bands, size = _matrices(c.inputs[0])
    merge_dims(bands, 3)
    rhs_leading, rows, count = _matrices(c.inputs[1])
    return (_join(merge(leading, rhs_leading), merge_dims(size, rows), count),)


@shape_fn("TridiagonalMatMul")
def multiply_tridiagonal(c: ShapeContext) -> Sequence[Shape]:
    """The shape of the right-hand sides [..., n, k], for three diagonals [..., 1, n]."""
    leading, size, count = _matrices(c.inputs[3])
    for diagonal in c.inputs[:3]:
        outer, one, length = _matrices(diagonal)
        merge_dims(one, 1)
        leading, size = merge(leading, outer), merge_dims(size, length)
    return (_join(leading, size, count),)


shape_fn("BatchSelfAdjointEig", "NearestNeighbors", "KmeansPlusPlusInitialization")(unknown)
shape_fn("KMC2ChainInitialization")(scalar)
