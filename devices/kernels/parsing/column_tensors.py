"""Columns of features as tensors: dense, padded, sparse, ragged.

records [1, 2], [], [3]     sparse  indices [0 0] [0 1] [2 0], values 1 2 3, shape [3 2]
                            ragged  values 1 2 3, splits 0 2 2 3
                            padded  [[1 2] [0 0] [3 0]]
"""

from __future__ import annotations

from math import prod

import numpy as np

from ....graph.dtypes import Array, DataType
from ....graph.ops.parsing.feature_columns import FeatureColumn


def places(counts: Array) -> Array:
    """The number of each value within its own record."""
    starts: Array = np.repeat(np.cumsum(counts) - counts, counts)
    return np.arange(len(starts)) - starts


def longest(counts: Array) -> int:
    """The greatest count, 0 of none."""
    return int(counts.max(initial=0))


def sparse_parts(column: FeatureColumn) -> tuple[Array, Array, Array]:
    """Indices [values, 2], values, and the shape: records by the greatest count."""
    counts = column.counts
    rows = np.repeat(np.arange(len(counts)), counts)
    return np.stack([rows, places(counts)], axis=1), column.values, np.array([len(counts), longest(counts)], np.int64)


def splits_of(counts: Array, dtype: np.dtype[np.integer]) -> Array:
    """Where the rows begin, and the end of the last one."""
    splits = np.zeros(len(counts) + 1, dtype)
    np.cumsum(counts, out=splits[1:])
    return splits


def blank(dtype: DataType, shape: tuple[int, ...]) -> Array:
    """Zeros, or empty strings."""
    if dtype == DataType.STRING:
        return np.full(shape, b"", object)
    return np.zeros(shape, np.float32 if dtype == DataType.FLOAT else np.int64)


def padded(values: Array, counts: Array, result: Array) -> Array:
    """`result`, whose first axis is that of the records, with their values in place of its first elements."""
    width = prod(result.shape[1:])
    rows = result.reshape(len(counts), width)
    rows[np.arange(width) < counts[:, None]] = values
    return result


def filled(column: FeatureColumn, shape: tuple[int, ...], default: Array) -> Array:
    """One tensor of that shape per record: its values, or the default where it has none."""
    count = len(column.counts)
    if len(column.values) == count * prod(shape):
        return column.values.reshape(count, *shape)
    result = np.empty((count, *shape), column.values.dtype)
    result[...] = default
    return padded(column.values, column.counts, result)
