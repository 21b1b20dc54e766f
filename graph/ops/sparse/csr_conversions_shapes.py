"""Shape functions of conversions: a matrix is a scalar, and what is inside is known only when it runs."""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.shape_functions import ShapeContext, scalar, shape_fn, unknown, with_rank
from ...dtypes import Shape

shape_fn("DenseToCSRSparseMatrix", "SparseMatrixZeros")(scalar)
shape_fn("CSRSparseMatrixToDense", "SparseMatrixNNZ")(unknown)


@shape_fn("SparseTensorToCSRSparseMatrix")
def from_sparse_tensor(c: ShapeContext) -> Sequence[Shape]:
    """A scalar; the inputs are a matrix of indices and two vectors."""
    for shape, rank in zip(c.inputs, (2, 1, 1), strict=True):
        with_rank(shape, rank)
    return ((),)


@shape_fn("CSRSparseMatrixToSparseTensor")
def to_sparse_tensor(c: ShapeContext) -> Sequence[Shape]:
    """A matrix of indices and two vectors."""
    return ((None, None), (None,), (None,))


@shape_fn("CSRSparseMatrixComponents")
def components(c: ShapeContext) -> Sequence[Shape]:
    """Three vectors."""
    return ((None,), (None,), (None,))
