"""Shape functions of products, sums and factors of sparse matrices by rows, which are scalars."""

from __future__ import annotations

from ...analysis.shape_functions import scalar, shape_fn, unknown

shape_fn("SparseMatrixAdd", "SparseMatrixMul", "SparseMatrixSparseCholesky", "SparseMatrixSparseMatMul")(scalar)
shape_fn("SparseMatrixSoftmax", "SparseMatrixTranspose")(scalar)
shape_fn("SparseMatrixMatMul")(unknown)
