"""Conversions between dense tensors, sparse tensors (indices and values) and sparse matrices by rows."""

from __future__ import annotations

from itertools import pairwise
from math import prod

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, DataType, numpy_dtype
from ..checks import require
from ..output_size import output_shape
from ..registry import Construction, Kernel, kernel
from .csr_matrix import CSRMatrix, CsrRows, carrying_csr, csr_of


def _from_indices(indices: Array, values: Array, shape: tuple[int, ...], dtype: DataType) -> CSRMatrix:
    """The matrix with these elements, in any order."""
    for size in shape:
        require(size >= 0, f"Expected shape dimensions to be non-negative, got {size}")
    output_shape((prod(shape[:-2]), shape[-2] + 1), np.dtype(np.int32))  # the row pointers
    wrong = np.nonzero(((indices < 0) | (indices >= np.array(shape))).any(1))[0]
    if wrong.size:
        index = ", ".join(map(str, indices[wrong[0]].tolist()))
        require(False, f"Sparse index tuple indices[{wrong[0]}, :] = [{index}] is out of bounds")
    order = np.lexsort(indices.T[::-1])
    indices, values = indices[order], values[order]
    batch = indices[:, 0] if len(shape) == 3 else np.zeros(len(indices), np.int64)
    ends = np.searchsorted(batch, np.arange(prod(shape[:-2]) + 1))
    parts = [
        CsrRows.of(indices[first:last, -2], indices[first:last, -1], values[first:last], shape[-2])
        for first, last in pairwise(ends.tolist())
    ]
    return CSRMatrix(dtype, shape, tuple(parts))


@kernel("SparseTensorToCSRSparseMatrix")
def from_sparse_tensor(node: Construction) -> Kernel:
    """The matrix, or batch of matrices, that a sparse tensor is."""
    dtype = node.input_types[1]

    def run(indices: Array, values: Array, shape: Array) -> Array:
        if np.ndim(shape) != 1:
            raise InvalidArgumentError(f"dense_shape must be a vector, not of shape {shape_text(np.shape(shape))}")
        if np.ndim(values) != 1:
            raise InvalidArgumentError(f"values must be a vector, not of shape {shape_text(np.shape(values))}")
        rank = len(shape)
        require(rank in (2, 3), f"SparseTensor must have rank 2 or 3; but indices has rank: {rank}")
        require(indices.shape == (len(values), rank), "indices must have a row for each value")
        return carrying_csr(_from_indices(indices, values, tuple(shape.tolist()), dtype))

    return run


@kernel("DenseToCSRSparseMatrix")
def from_dense(node: Construction) -> Kernel:
    """The matrix with the elements of a dense one at some indices."""
    dtype = node.input_types[0]

    def run(dense: Array, indices: Array) -> Array:
        rank = dense.ndim
        require(rank in (2, 3), f"DenseToCSRSparseMatrix takes tensors of rank 2 or 3, not {rank}")
        require(indices.ndim == 2 and indices.shape[1] == rank, "indices must be a matrix with a column for each axis")
        outside = ((indices < 0) | (indices >= np.array(dense.shape))).any()
        values = dense[tuple(indices.T)] if not outside else np.zeros(len(indices), dense.dtype)
        return carrying_csr(_from_indices(indices, values, dense.shape, dtype))

    return run


@kernel("SparseMatrixZeros")
def zeros(node: Construction) -> Kernel:
    """A matrix without elements."""
    dtype = node.attrs["type"]

    def run(shape: Array) -> Array:
        if np.ndim(shape) != 1:
            raise InvalidArgumentError(f"dense_shape must be a vector, not of shape {shape_text(np.shape(shape))}")
        sizes = tuple(np.asarray(shape).tolist())
        if len(sizes) not in (2, 3):
            raise InvalidArgumentError(f"shape must have rank 2 or 3, not {len(sizes)}")
        nothing = np.empty((0, len(sizes)), np.int64)
        return carrying_csr(_from_indices(nothing, np.empty(0, numpy_dtype(dtype)), sizes, dtype))

    return run


@kernel("CSRSparseMatrixToSparseTensor")
def to_sparse_tensor(node: Construction) -> Kernel:
    """Indices, values and shape."""
    dtype = node.attrs["type"]

    def run(matrix: Array) -> tuple[Array, Array, Array]:
        source = csr_of(matrix, dtype)
        lines = []
        for number, part in enumerate(source.parts):
            batch = [np.full(len(part.values), number)] if len(source.shape) == 3 else []
            lines.append(np.stack([*batch, part.row_numbers, part.columns], 1))
        values = np.concatenate([part.values for part in source.parts])
        return np.concatenate(lines).astype(np.int64), values, np.array(source.shape, np.int64)

    return run


@kernel("CSRSparseMatrixToDense")
def to_dense(node: Construction) -> Kernel:
    """The dense tensor."""
    dtype = node.attrs["type"]
    return lambda matrix: dense_of(csr_of(matrix, dtype))


def dense_of(matrix: CSRMatrix) -> Array:
    """All elements, with zeros where the matrix has none."""
    result = np.zeros((len(matrix.parts), *matrix.shape[-2:]), numpy_dtype(matrix.dtype))
    for number, part in enumerate(matrix.parts):
        result[number, part.row_numbers, part.columns] = part.values
    return result.reshape(matrix.shape)


@kernel("CSRSparseMatrixComponents")
def components(node: Construction) -> Kernel:
    """The three vectors of one matrix of the batch."""
    dtype = node.attrs["type"]

    def run(matrix: Array, index: Array) -> tuple[Array, Array, Array]:
        parts = csr_of(matrix, dtype).parts
        if index.ndim != 0:
            raise InvalidArgumentError(f"index should be a scalar, got shape {shape_text(index.shape)}")
        number = int(index)
        if not 0 <= number < len(parts):
            raise InvalidArgumentError(f"index ({number}) not in [0, {len(parts)})")
        part = parts[number]
        return part.row_ptrs, part.columns, part.values

    return run


@kernel("SparseMatrixNNZ")
def count_of_elements(node: Construction) -> Kernel:
    """The number of elements; of a batch, of each matrix."""

    def run(matrix: Array) -> Array:
        source = csr_of(matrix)
        counts = np.array([len(part.values) for part in source.parts], np.int32)
        return counts.reshape(source.shape[:-2])

    return run
