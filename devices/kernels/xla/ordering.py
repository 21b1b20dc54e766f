"""Sorting in XLA's total order of the last axis: -NaN, -inf, ..., -0, 0, ..., inf, NaN.

Values that go with equal keys keep their order; XLA promises no order.
"""

from __future__ import annotations

import numpy as np

from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..checks import require
from ..half_types import is_half
from ..registry import simple


def _ordered(x: Array) -> Array:
    """Integers in the total order of the elements: of a float, its bits with those of negative ones turned around."""
    if x.dtype.kind != "f" and not is_half(x.dtype):
        return x
    bits = x.view(f"i{x.dtype.itemsize}")
    return np.asarray(np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits))


def sort(x: Array) -> Array:
    """The elements along the last axis, smallest first."""
    require(x.ndim >= 1, "a scalar has no dimension to sort")
    return np.asarray(np.take_along_axis(x, np.argsort(_ordered(x), axis=-1, kind="stable"), -1))


def key_value_sort(keys: Array, values: Array) -> tuple[Array, Array]:
    """Both in the order of the keys."""
    sizes = f"{shape_text(keys.shape)} vs. {shape_text(values.shape)}"
    require(keys.shape == values.shape, f"Keys and values of a sort must have the same dimensions: {sizes}")
    if not keys.ndim:
        return keys, values
    order = np.argsort(_ordered(keys), axis=-1, kind="stable")
    return np.take_along_axis(keys, order, -1), np.take_along_axis(values, order, -1)


simple("XlaSort", sort)
simple("XlaKeyValueSort", key_value_sort)
