"""The exponential in float32 to the last bit as TensorFlow's vector code has it, for what is built on it.

Flows in: float arrays. Flows out: their exponentials. Always holds: of up to a number of float32 elements every product
and sum is rounded to float32 in a fixed order; other arrays take numpy's function, which is many times as fast.
"""

from __future__ import annotations

import numpy as np

from ...graph.dtypes import Array

_LARGE = 1 << 15  # elements from which on speed counts more than the last bit


def _constants(*values: float) -> list[Array]:
    return [np.array(value, np.float32) for value in values]  # as an operand faster than a number or a numpy scalar


# exp(x) = 2^n exp(r) with r = x - n ln 2, ln 2 in two parts (Cody and Waite, 1980) as in Moshier's Cephes library; the
# polynomial of exp(r) from r^2 on is the minimax one that Eigen (3.4 and later) documents.
_LOG2_E, _HALF, _LN2_HIGH, _LN2_LOW, _ONE = _constants(1.44269504088896341, 0.5, 0.693359375, -2.12194440e-4, 1)
_P2, _P3, _P4, _P5, _P6 = _constants(
    0.49999988079071045, 0.16666518151760101, 4.166965186595917e-2, 8.368944749236107e-3, 1.374496379867196e-3
)
_LEAST, _GREATEST = _constants(-104, 88.8)  # beyond them the result is 0 or infinite


def exp_float32(x: Array) -> Array:
    """exp(x) of an array; of float32 with TensorFlow's bits unless it is large."""
    if x.dtype != np.float32 or x.size >= _LARGE:
        return np.asarray(np.exp(x))
    x = np.minimum(np.maximum(x, _LEAST), _GREATEST)
    power = np.floor(x * _LOG2_E + _HALF)
    r = x - power * _LN2_HIGH - power * _LN2_LOW
    square = r * r
    even = (square * _P6 + _P4) * square + _P2
    odd = square * _P5 + _P3
    series = (r * odd + even) * square + (r + _ONE)
    return np.asarray(np.ldexp(series, power.astype(np.int32)))
