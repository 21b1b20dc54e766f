"""Distributions of random numbers, as functions that draw from a place in a Philox stream.

    uniform(float32)(place, 3)  ->  three numbers in [0, 1)

All ops that draw the same distribution share the function: those with seeds, with keys and with generators.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..output_size import output_shape
from . import philox
from .philox import Position

# (place in the stream, how many numbers) -> that many numbers
Draw = Callable[[Position, int], Array]


_DRAWN = np.dtype(np.float32)  # what most draws are made in


def as_shape(shape: Array) -> tuple[int, ...]:
    """The value of a shape input; InvalidArgumentError unless it is a vector of sizes."""
    if shape.ndim != 1 or shape.dtype.kind not in "iu":
        raise InvalidArgumentError(f"shape must be a vector of {{int32,int64}}, got shape {shape_text(shape.shape)}")
    sizes = tuple(map(int, shape.tolist()))
    for size in sizes:
        if size < 0:
            raise InvalidArgumentError(f"Dimension {size} must be >= 0")
    if prod(sizes) >= 1 << 63:
        raise InvalidArgumentError(f"Shape {shape_text(sizes)} would have more than 2**63 - 1 elements")
    return output_shape(sizes, _DRAWN)


def _words(place: Position, count: int, dtype: np.dtype[Any]) -> Array:
    """Words for `count` numbers, in whole blocks."""
    return philox.stream(place, -(-count * philox.words_per_number(dtype) // 4))


def uniform(dtype: np.dtype[Any]) -> Draw:
    """Numbers in [0, 1)."""
    return lambda place, count: philox.uniform_from(_words(place, count, dtype), dtype).reshape(-1)[:count]


def normal(dtype: np.dtype[Any]) -> Draw:
    """Standard normal numbers."""
    return lambda place, count: philox.normal_from(_words(place, count, dtype), dtype).reshape(-1)[:count]


def truncated(dtype: np.dtype[Any]) -> Draw:
    """Standard normal numbers, redrawn until they lie within two deviations."""
    return lambda place, count: philox.truncated_normal(place, count, dtype)


def full_integers(dtype: np.dtype[Any]) -> Draw:
    """Integers of all values of `dtype`."""
    return lambda place, count: philox.full_integers_from(_words(place, count, dtype), dtype).reshape(-1)[:count]


def integers(dtype: np.dtype[Any], low: Array, high: Array) -> Draw:
    """Integers in [low, high); InvalidArgumentError unless these are scalars, low < high."""
    if np.ndim(low) != 0:
        raise InvalidArgumentError(f"minval must be 0-D, got shape {shape_text(np.shape(low))}")
    if np.ndim(high) != 0:
        raise InvalidArgumentError(f"maxval must be 0-D, got shape {shape_text(np.shape(high))}")
    first, last = int(low), int(high)
    if first >= last:
        raise InvalidArgumentError(f"Need minval < maxval, got {first} >= {last}")
    span = last - first
    return lambda place, count: philox.integers_from(_words(place, count, dtype), first, span, dtype).reshape(-1)[
        :count
    ]
