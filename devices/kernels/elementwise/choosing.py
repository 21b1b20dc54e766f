"""The choice between two tensors, element by element: `np.where`, faster for large tensors of numbers.

`np.where` branches at each element, which costs ten times as much as copying it if the conditions follow no pattern.
Bits need no branch:

    mask = all ones where the condition holds, else zeros        then ^ (mask & (then ^ otherwise)), the other way round
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....graph.dtypes import Array

_MANY = 1 << 11  # conditions; for fewer `np.where`, a single call, is as fast
_BITS = {size: np.dtype(f"i{size}") for size in (1, 2, 4, 8)}


def choose(condition: Array, then: Array, otherwise: Array) -> Any:  # Any: numpy scalars for scalars
    """`np.where` for two tensors of one element type; ValueError if shapes do not broadcast."""
    bits = _BITS.get(then.dtype.itemsize)
    if condition.size < _MANY or bits is None or then.dtype == object:
        return np.where(condition, then, otherwise)
    mask = np.negative(condition.view(np.int8), dtype=bits)
    other = otherwise.view(bits)
    result = (then.view(bits) ^ other) & mask
    result ^= other
    return result.view(then.dtype)
