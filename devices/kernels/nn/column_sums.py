"""Sums and means over the rows of a matrix, and inverse roots, rounded in TensorFlow's order.

Sums that should vanish, such as the gradient of a bias before a batch norm, leave a remainder that Adam makes large. To
leave TensorFlow's remainder, float32 numbers are added in the order of its CPU kernels. Large matrices are added by
BLAS, several times as fast.
"""

from __future__ import annotations

import numpy as np

from ....graph.dtypes import Array
from ..linalg.products import matrix_product

LARGE = 1 << 15  # larger arrays are computed fast, at the cost of the last bit
_LANES = 8  # float32 numbers in a vector register of 256 bits: columns beyond the last whole one are added singly
_ACCUMULATORS = 4


def column_sums(matrix: Array) -> Array:
    """The sum of each column, row after row; BLAS adds large matrices, faster than numpy if rows are short."""
    if matrix.dtype in (np.float32, np.float64) and matrix.size >= LARGE:
        return np.asarray(matrix_product(np.ones((1, matrix.shape[0]), matrix.dtype), matrix)[0])
    return _in_order(matrix)


def _in_order(matrix: Array) -> Array:
    if matrix.shape[1] == 1 and matrix.shape[0]:  # numpy would add a contiguous column pairwise
        return np.add.accumulate(matrix[:, 0], dtype=matrix.dtype)[-1:]
    return np.asarray(np.add.reduce(np.ascontiguousarray(matrix), axis=0, dtype=matrix.dtype))


def column_means(matrix: Array) -> Array:
    """The mean of each column of a float32 matrix that has rows: its sum times the rounded reciprocal of their number.

    Columns in whole registers have four running sums, of every fourth row each, which are added at the end, followed by
    the remaining rows one by one.
    """
    rows, columns = matrix.shape
    per_row = np.float32(1) / np.float32(rows)
    whole = columns - columns % _LANES
    if matrix.size >= LARGE or whole == 0 or rows < _ACCUMULATORS:
        return column_sums(matrix) * per_row
    result = np.empty(columns, np.float32)
    result[whole:] = _in_order(matrix[:, whole:]) if whole < columns else ()
    last = rows - rows % _ACCUMULATORS
    running = _in_order(matrix[:last, :whole].reshape(last // _ACCUMULATORS, _ACCUMULATORS * whole))
    result[:whole] = _in_order(np.concatenate([running.reshape(_ACCUMULATORS, whole), matrix[last:, :whole]]))
    return result * per_row


def inverse_roots(values: Array) -> Array:
    """1 / sqrt of positive float32 numbers; those in whole registers by an estimate and one Newton step.

    The estimate is that of the RSQRTPS instruction of Intel's processors: the inverse root, to 13 binary digits, of the
    middle of the interval of relative length 2^-10 that contains the number.
    """
    exact = np.float32(1) / np.sqrt(values)
    whole = len(values) - len(values) % _LANES
    if whole == 0:
        return np.asarray(exact)
    registers = values[:whole]
    middle = (registers.view(np.uint32) & np.uint32(0xFFFFE000) | np.uint32(0x1000)).view(np.float32)
    digits, exponent = np.frexp(1 / np.sqrt(middle.astype(np.float64)))
    estimate = np.ldexp(np.rint(digits * 2**13), exponent - 13).astype(np.float32)
    refined = estimate + np.float32(0.5) * estimate * (np.float32(1) - registers * estimate * estimate)
    usual = (registers >= np.finfo(np.float32).tiny) & (registers < np.inf)
    return np.concatenate([np.where(usual, refined, exact[:whole]), exact[whole:]])
