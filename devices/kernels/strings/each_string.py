"""Applies functions to every string of a tensor, an object array of bytes.

numpy's own string types are not used, since they drop zero bytes at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ....graph.dtypes import Array


def strings(values: Iterable[bytes], shape: Sequence[int]) -> Array:
    """A string tensor of that shape with these elements in row-major order."""
    elements = list(values)
    result = np.empty(len(elements), object)
    result[:] = elements
    return result.reshape(shape)


def each(function: Callable[[bytes], bytes], x: Array) -> Array:
    """`function` of every string."""
    return strings((function(value) for value in x.reshape(-1).tolist()), x.shape)


def measured(function: Callable[[bytes], Any], x: Array, dtype: np.dtype[Any]) -> Array:
    """`function` of every string, as numbers of that type."""
    return np.array([function(value) for value in x.reshape(-1).tolist()], dtype).reshape(x.shape)


def decoded(value: bytes) -> str:
    """The text of UTF-8 bytes; invalid bytes become surrogates that `encoded` turns back."""
    return value.decode("utf-8", "surrogateescape")


def encoded(value: str) -> bytes:
    """Undoes `decoded`."""
    return value.encode("utf-8", "surrogateescape")


def character_starts(value: bytes) -> list[int]:
    """The positions of the UTF-8 characters of `value`: the bytes that do not continue a character."""
    return [i for i, byte in enumerate(value) if byte & 0xC0 != 0x80]
