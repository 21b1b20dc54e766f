"""Hypothesis strategies of arrays for the tests of array kernels.

Arrays are small, may be empty or have no axes, and cover every element type that numpy represents exactly; strings are
object arrays of bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import strategies as st

from partita.graph.dtypes import Array

DTYPES: tuple[Any, ...] = (  # numpy takes types and dtypes alike
    np.float32,
    np.float64,
    np.float16,
    ml_dtypes.bfloat16,
    np.int8,
    np.int16,
    np.int32,
    np.int64,
    np.uint8,
    np.uint16,
    np.uint32,
    np.uint64,
    np.bool_,
    np.complex64,
    np.complex128,
    object,
)
NUMBERS = tuple(d for d in DTYPES if d not in (np.bool_, np.complex64, np.complex128, object))


def ints(*values: int) -> Array:
    """An int32 vector."""
    return np.array(values, np.int32)


def texts(*values: bytes) -> Array:
    """A vector of strings."""
    return np.array(values, object)


def filled(shape: Sequence[int], dtype: Any, seed: int) -> Array:
    """An array of that shape with few different elements, so that equal ones occur."""
    numbers = np.random.default_rng(seed).integers(0, 7, tuple(shape))
    if dtype is object:
        result = np.empty(tuple(shape), object)
        result.reshape(-1)[:] = [b"\0" * (n % 3) + b"x" * n for n in numbers.reshape(-1).tolist()]
        return result
    return np.asarray(numbers).astype(dtype)


def shapes_of(least: int = 0, most: int = 4, largest: int = 4, smallest: int = 0) -> st.SearchStrategy[tuple[int, ...]]:
    """Shapes of `least` to `most` axes."""
    return st.lists(st.integers(smallest, largest), min_size=least, max_size=most).map(tuple)


@st.composite
def arrays(draw: st.DrawFn, least: int = 0, most: int = 4, smallest: int = 0, dtypes: Sequence[Any] = DTYPES) -> Array:
    """Arrays of any element type among `dtypes`, of `least` to `most` axes."""
    shape = draw(shapes_of(least, most, smallest=smallest))
    return filled(shape, draw(st.sampled_from(dtypes)), draw(st.integers(0, 99)))


def same(a: Any, b: Any) -> bool:  # arrays or scalars of any type
    """Whether both have the same element type, shape and elements."""
    x, y = np.asarray(a), np.asarray(b)
    return x.dtype == y.dtype and x.shape == y.shape and bool(np.all(x == y))


@st.composite
def index_tuples(draw: st.DrawFn, x: Array) -> Array:
    """Index tuples into the first axes of `x`, some of them equal."""
    depth = draw(st.integers(1, x.ndim))
    batch = draw(shapes_of(1, 2, smallest=1))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    return rng.integers(0, x.shape[:depth], (*batch, depth)).astype(draw(st.sampled_from([np.int32, np.int64])))
