"""Matrices to try linear algebra on, and how close two have to be."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from partita.graph.dtypes import Array
from tests.devices.kernels.draws import COMPLEX_TYPES, filled

TYPES = [np.dtype(np.float32), np.dtype(np.float64), *COMPLEX_TYPES]


BATCHES = st.sampled_from([(), (2,), (2, 1), (0,)])


SEEDS = st.integers(0, 999)


def close(actual: Array, expected: Array, dtype: np.dtype) -> None:
    """Equal up to what a few dozen roundings in `dtype` may cost."""
    limit = 2e-3 if dtype in (np.float32, np.complex64) else 1e-9
    np.testing.assert_allclose(actual, expected, rtol=limit, atol=limit)


def turned(x: Array) -> Array:
    """The conjugate transpose of each inner matrix."""
    return np.swapaxes(x.conj(), -1, -2)


def regular(dtype: np.dtype, batch: tuple[int, ...], seed: int, size: int = 4) -> Array:
    """Matrices far from singular: their diagonals dominate."""
    return np.asarray(filled(dtype, (*batch, size, size), seed, -1, 1) + (3 * np.eye(size)).astype(dtype))


def positive(dtype: np.dtype, batch: tuple[int, ...], seed: int) -> Array:
    """Self-adjoint matrices with eigenvalues of 1 and more."""
    a = filled(dtype, (*batch, 4, 4), seed, -1, 1)
    return (a @ turned(a) + np.eye(4)).astype(dtype)


def numbers(seed: int, *shape: int, dtype: str = "float32") -> np.ndarray:
    values = np.random.default_rng(seed).integers(-4, 5, shape)
    return (values * (1 + 2j) if dtype.startswith("complex") else values).astype(dtype)
