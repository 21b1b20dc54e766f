"""Sparse matrices by rows (CSR), as variants: a matrix, or a batch of matrices of one shape.

[[0, 1, 0, 2],      row_ptrs 0 2 2 3      where each row begins in the other two; the last is the number of elements
 [0, 0, 0, 0],      columns  1 3 0
 [3, 0, 0, 0]]      values   1 2 3
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, DataType, dtype_name, numpy_dtype
from ..carried import carried, carrying


@dataclass(frozen=True, slots=True)
class CsrRows:
    """One matrix by rows; columns ascend within a row."""

    row_ptrs: Array
    columns: Array
    values: Array

    @classmethod
    def of(cls, rows: Array, columns: Array, values: Array, count: int) -> CsrRows:
        """The matrix of elements in the order of their rows and columns."""
        counts = np.bincount(rows, minlength=count)
        ends = np.concatenate([[0], np.cumsum(counts)])
        return cls(ends.astype(np.int32), columns.astype(np.int32), values)

    @property
    def row_numbers(self) -> Array:
        """The row of each element."""
        return np.repeat(np.arange(len(self.row_ptrs) - 1), np.diff(self.row_ptrs))

    def transposed(self, num_columns: int) -> CsrRows:
        """The matrix with rows and columns exchanged."""
        order = np.argsort(self.columns, kind="stable")
        return CsrRows.of(self.columns[order], self.row_numbers[order], self.values[order], num_columns)


def summed(rows: Array, places: Array, values: Array, count: int, columns: int) -> CsrRows:
    """The matrix of elements in any order; those at one place are added up, in their order."""
    keys, where = np.unique(rows.astype(np.int64) * columns + places, return_inverse=True)
    total = np.zeros(len(keys), values.dtype)
    np.add.at(total, where.reshape(-1), values)
    return CsrRows.of(keys // max(columns, 1), keys % max(columns, 1), total, count)


@dataclass(frozen=True, slots=True)
class CSRMatrix:
    """`shape` has two sizes, or three for a batch; there is a part for each matrix."""

    dtype: DataType
    shape: tuple[int, ...]
    parts: tuple[CsrRows, ...]

    def with_parts(self, parts: Iterable[CsrRows], sizes: Sequence[int]) -> CSRMatrix:
        """The same number of matrices, of these sizes."""
        return CSRMatrix(self.dtype, (*self.shape[:-2], *sizes), tuple(parts))

    def transposed(self, *, conjugate: bool = False) -> CSRMatrix:
        """All matrices transposed, with conjugate elements if asked for."""
        rows, columns = self.shape[-2:]
        turned = [part.transposed(columns) for part in self.parts]
        if conjugate:
            turned = [CsrRows(part.row_ptrs, part.columns, np.conj(part.values)) for part in turned]
        return self.with_parts(turned, (columns, rows))

    def times(self, factor: Array) -> CSRMatrix:
        """All elements times a number."""
        parts = [CsrRows(part.row_ptrs, part.columns, part.values * factor) for part in self.parts]
        return self.with_parts(parts, self.shape[-2:])

    def plus(self, other: CSRMatrix) -> CSRMatrix:
        """The sum; InvalidArgumentError for matrices of other shapes."""
        if self.shape != other.shape:
            shapes = f"{shape_text(self.shape)} vs. {shape_text(other.shape)}"
            raise InvalidArgumentError(f"Shapes of a and b must match: {shapes}")
        parts = []
        for a, b in zip(self.parts, other.parts, strict=True):
            rows, columns, values = (
                np.concatenate(pair)
                for pair in ((a.row_numbers, b.row_numbers), (a.columns, b.columns), (a.values, b.values))
            )
            parts.append(summed(rows, columns, values, *self.shape[-2:]))
        return self.with_parts(parts, self.shape[-2:])

    def zeros(self) -> CSRMatrix:
        """The same elements, all zero."""
        return self.times(np.zeros((), numpy_dtype(self.dtype)))


def csr_of(value: Array, dtype: DataType | None = None) -> CSRMatrix:
    """The matrix that a variant carries; InvalidArgumentError for one of another type."""
    matrix = carried(value, CSRMatrix, "a CSRSparseMatrix")
    if dtype is not None and matrix.dtype != dtype:
        raise InvalidArgumentError(
            f"Asked for a CSRSparseMatrix of type {dtype_name(dtype)} but saw dtype: {dtype_name(matrix.dtype)}"
        )
    return matrix


def carrying_csr(matrix: CSRMatrix) -> Array:
    """The variant that carries a matrix."""
    return carrying(matrix)
