"""Gradients of conversions of sparse matrices. What flows back into a matrix is a matrix with the same elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient

if TYPE_CHECKING:
    from ...builder.handles import Tensor
    from ...dtypes import DataType


@gradient("SparseTensorToCSRSparseMatrix")
def from_sparse_tensor(op: Forward, grad: Tensor) -> Gradients:
    """The values of the gradient."""
    _, values, _ = op.make_all("CSRSparseMatrixToSparseTensor", grad, type=op.input_types[1])
    return None, values, None


@gradient("CSRSparseMatrixToSparseTensor")
def to_sparse_tensor(op: Forward, _indices: None, grad: Tensor, _shape: None) -> Gradients:
    """The matrix with these values."""
    indices, _, shape = op.outputs
    return (op.make("SparseTensorToCSRSparseMatrix", indices, grad, shape),)


@gradient("DenseToCSRSparseMatrix")
def from_dense(op: Forward, grad: Tensor) -> Gradients:
    """Zero where the matrix has no elements."""
    return op.make("CSRSparseMatrixToDense", grad, type=op.input_types[0]), None


@gradient("CSRSparseMatrixToDense")
def to_dense(op: Forward, grad: Tensor) -> Gradients:
    """The elements of the gradient where the matrix has some."""
    indices, _ = elements_of(op, op.inputs[0], op.output_types[0])
    return (op.make("DenseToCSRSparseMatrix", grad, indices),)


def elements_of(op: Forward, matrix: Tensor, dtype: DataType) -> tuple[Tensor, Tensor]:
    """Indices and shape of the elements of a matrix."""
    indices, _, shape = op.make_all("CSRSparseMatrixToSparseTensor", matrix, type=dtype)
    return indices, shape
