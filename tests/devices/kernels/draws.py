"""Generators of arrays for kernel tests: every element type that a family of ops takes, and shapes that broadcast.

Elements are finite and moderate unless a test asks otherwise.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from partita.graph.dtypes import Array

HALF_TYPES: list[np.dtype[Any]] = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]
FLOAT_TYPES: list[np.dtype[Any]] = [*HALF_TYPES, np.dtype(np.float32), np.dtype(np.float64)]
COMPLEX_TYPES: list[np.dtype[Any]] = [np.dtype(np.complex64), np.dtype(np.complex128)]
INTEGER_TYPES: list[np.dtype[Any]] = [np.dtype(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)]
NUMBERS = [*FLOAT_TYPES, *COMPLEX_TYPES, *INTEGER_TYPES]

# What one rounding may cost, relative to the result, with room for a few of them.
TOLERANCE = {np.dtype(np.float16): 5e-3, np.dtype(ml_dtypes.bfloat16): 4e-2, np.dtype(np.float32): 1e-5}

SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)


def tolerance(dtype: np.dtype[Any]) -> float:
    """A relative and absolute tolerance for results of that type."""
    real = np.dtype(np.float32) if dtype == np.complex64 else dtype
    return TOLERANCE.get(real, 1e-11)


def filled(dtype: np.dtype[Any], shape: tuple[int, ...], seed: int, low: float = -3, high: float = 3) -> Array:
    """Random elements between low and high (from 0 where the type is unsigned); either for truth values."""
    generator = np.random.default_rng(seed)
    if dtype == np.bool_:
        return np.asarray(generator.integers(0, 2, shape)).astype(dtype)
    if dtype.kind in "iu":
        least = 0 if dtype.kind == "u" else int(low)
        return np.asarray(generator.integers(least, int(high) + 1, shape)).astype(dtype)
    values: Array = np.asarray(generator.uniform(low, high, shape))
    if dtype.kind == "c":
        values = values + 1j * generator.uniform(low, high, shape)
    return values.astype(dtype)


def arrays(types: list[np.dtype[Any]], low: float = -3, high: float = 3) -> st.SearchStrategy[Array]:
    """Arrays of any small shape and one of the types."""
    return st.builds(
        lambda dtype, shape, seed: filled(dtype, shape, seed, low, high),
        st.sampled_from(types),
        SHAPES,
        st.integers(0, 2**16),
    )


@st.composite
def pairs(draw: st.DrawFn, types: list[np.dtype[Any]], low: float = -3, high: float = 3) -> tuple[Array, Array]:
    """Two arrays of one type whose shapes broadcast."""
    dtype = draw(st.sampled_from(types))
    shapes = draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=4)).input_shapes
    seed = draw(st.integers(0, 2**16))
    return filled(dtype, shapes[0], seed, low, high), filled(dtype, shapes[1], seed + 1, low, high)
