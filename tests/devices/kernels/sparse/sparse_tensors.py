"""Sparse tensors to try kernels on, and the dense tensors they stand for."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from partita.graph.dtypes import Array
from tests.devices.kernels.random_arrays import filled, shapes_of

Parts = tuple[Array, Array, Array]


INDICES = np.array([[0, 1], [1, 0], [1, 2]])


VALUES = np.array([1, 2, 3], np.float32)


SHAPE = np.array([2, 3])


def parts_of(dense: Array) -> Parts:
    """The sparse tensor of what is not zero."""
    indices = np.argwhere(dense != 0)
    return indices, dense[tuple(indices.T)], np.array(dense.shape, np.int64)


def dense_of(parts: Parts) -> Array:
    """The dense array that a sparse tensor stands for."""
    indices, values, shape = parts
    result = np.zeros(shape.tolist(), values.dtype)
    result[tuple(indices.T)] = values
    return result


def matrices(rank: int = 2) -> st.SearchStrategy[Array]:
    """Dense arrays with zeros among their elements."""
    shape = shapes_of(rank, rank, smallest=1)
    return st.builds(lambda s, seed: np.maximum(filled(s, np.float64, seed) - 3, 0), shape, st.integers(0, 99))
