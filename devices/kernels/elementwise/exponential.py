"""The exponential in float32 with TensorFlow's bits, for the kernels that are built on it.

TensorFlow's vector code rounds every product and sum to float32 in a fixed order; results below the normal numbers are
zero. Large arrays and other types use numpy's function, which is many times as fast.
"""

from __future__ import annotations

from math import floor

import numpy as np

from ....graph.dtypes import Array

_LARGE = 1 << 12  # larger arrays are computed fast, at the cost of the last bit


def _constants(*values: float) -> list[Array]:
    return [np.array(value, np.float32) for value in values]  # 0-d arrays: the fastest operands


# exp(x) = 2^n exp(r) with r = x - n ln 2, ln 2 in two parts (Cody and Waite, 1980) as in Moshier's Cephes library; the
# polynomial of exp(r) from r^2 on is the minimax one that Eigen (3.4 and later) documents.
_LOG2_E, _HALF, _LN2_HIGH, _LN2_LOW, _ONE = _constants(1.44269504088896341, 0.5, 0.693359375, -2.12194440e-4, 1)
_P2, _P3, _P4, _P5, _P6 = _constants(
    0.49999988079071045, 0.16666518151760101, 4.166965186595917e-2, 8.368944749236107e-3, 1.374496379867196e-3
)
_LEAST, _GREATEST = _constants(-88, 88.8)  # below and above these the result is 0 and infinite
_SCALARS = [*map(np.float32, (_LOG2_E, _HALF, _LN2_HIGH, _LN2_LOW, _P2, _P3, _P4, _P5, _P6, _ONE))]
_LIMITS = np.float32(_LEAST), np.float32(_GREATEST)
_POWERS = [*(np.arange(256, dtype=np.int32) << 23).view(np.float32)]  # 2^(i - 127); zero and infinite at the ends
_BIAS, _EXPONENT = _constants(127, 2**23)  # 2^n has the bits (n + 127) * 2^23, from n = 128 on those of infinity


def exp_float32(x: Array) -> Array:
    """exp(x) of an array; for float32 with TensorFlow's bits unless the array is large."""
    if x.dtype != np.float32 or x.size >= _LARGE:
        return np.asarray(np.exp(x))
    if not x.ndim:
        return np.asarray(_of_one(np.float32(x)))
    shape = x.shape
    r = np.minimum(x.reshape(-1), _GREATEST)  # at least a vector, so that the steps below can work in place
    np.maximum(r, _LEAST, out=r)
    power = r * _LOG2_E
    power += _HALF
    np.floor(power, out=power)
    part = power * _LN2_HIGH
    r -= part
    np.multiply(power, _LN2_LOW, out=part)
    r -= part
    square = np.multiply(r, r, out=part)
    series = square * _P6
    series += _P4
    series *= square
    series += _P2
    odd = square * _P5
    odd += _P3
    odd *= r
    series += odd
    series *= square
    r += _ONE
    series += r
    power += _BIAS
    power *= _EXPONENT
    series *= power.astype(np.int32).view(np.float32)
    return np.asarray(series.reshape(shape))


def _of_one(x: np.float32) -> np.float32:
    """The same steps with numpy scalars, which for a single number are ten times as fast."""
    log2_e, half, high, low, p2, p3, p4, p5, p6, one = _SCALARS
    if x != x:
        return x
    r = max(min(x, _LIMITS[1]), _LIMITS[0])
    power = floor(r * log2_e + half)
    r = r - np.float32(power) * high - np.float32(power) * low
    square = r * r
    series = (square * p6 + p4) * square + p2 + (square * p5 + p3) * r
    return np.float32((series * square + (r + one)) * _POWERS[power + 127])
