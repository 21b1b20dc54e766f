"""Combines rows with rows of a tensor in place, one after the other, as TensorFlow's scatters and segment sums do."""

from __future__ import annotations

import numpy as np

from ....graph.dtypes import Array

_AT_ONCE = 1 << 18  # numbers, so that their places take no more than some megabytes


def combine_rows(ufunc: np.ufunc, target: Array, indices: Array, rows: Array) -> None:
    """`target[i] = ufunc(target[i], row)` for each index and row in turn; an index may occur twice.

    `target` is contiguous, `indices` is a vector of numbers in range, and `rows` has a row for each. Both count as
    vectors of numbers, for which numpy's indexed functions are several times as fast as for rows.
    """
    if not rows.size:
        return
    numbers, columns = target.reshape(-1), rows.size // len(rows)
    if columns == 1:
        ufunc.at(numbers, indices, rows.reshape(-1))
        return
    column, height = np.arange(columns), max(1, _AT_ONCE // columns)
    for start in range(0, len(rows), height):
        places = indices[start : start + height, None] * np.intp(columns) + column
        ufunc.at(numbers, places.reshape(-1), rows[start : start + height].reshape(-1))
