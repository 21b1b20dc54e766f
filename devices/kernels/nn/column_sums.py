"""Sums and means over the rows of a matrix, and inverse roots, rounded in TensorFlow's order.

Sums that should vanish, such as the gradient of a bias before a batch norm, leave a remainder that Adam makes large. To
leave TensorFlow's remainder, float32 numbers are added in the order of its CPU kernels. Large matrices are added by
BLAS, several times as fast.
"""

from __future__ import annotations

import numpy as np

from ....graph.dtypes import Array
from ..linalg.products import matrix_product
from ..reductions.in_order import reduce_row_by_row, reduce_rows

LARGE = 1 << 15  # larger arrays are computed fast, at the cost of the last bit
_LANES = 8  # float32 numbers in a vector register of 256 bits: columns beyond the last whole one are added singly


def column_sums(matrix: Array) -> Array:
    """The sum of each column, row after row; BLAS adds large matrices, faster than numpy if rows are short."""
    if matrix.dtype in (np.float32, np.float64) and matrix.size >= LARGE:
        return np.asarray(matrix_product(np.ones((1, matrix.shape[0]), matrix.dtype), matrix)[0])
    return reduce_row_by_row(np.add, np.ascontiguousarray(matrix))


def column_means(matrix: Array) -> Array:
    """The mean of each column of a float32 matrix that has rows: its sum times the rounded inverse of their number."""
    sums = column_sums(matrix) if matrix.size >= LARGE else reduce_rows(np.add, matrix)
    return sums * (np.float32(1) / np.float32(len(matrix)))


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
