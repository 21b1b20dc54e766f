"""The natural logarithm in float32 with TensorFlow's bits, for losses that are built on it.

    x = 2^n (1 + r), sqrt(1/2) <= 1 + r < sqrt(2)        log x = n ln 2 + P(r) / Q(r)

TensorFlow's vector code rounds every product, sum and quotient to float32 in a fixed order.
"""

from __future__ import annotations

import numpy as np

from ....graph.dtypes import Array


def _constant(value: float) -> Array:
    return np.array(value, np.float32)  # 0-d arrays: the fastest operands


# The rational approximation that Eigen (3.4 and later) documents for float32, from the highest power of r down, P and Q
# as rows of one array; P ends in 0 and Q in 1.
_ROWS = [
    np.array([[p], [q]], np.float32)
    for p, q in [
        (0.18256296349849254, 0.049616247954120038),
        (1.0000000190281063, 0.59923249590823520),
        (1.0000000190281136, 1.4999999999999927),
    ]
]
_LANES = 8  # float32 numbers in a vector register of 256 bits
_ROOT_OF_HALF, _LN2, _ONE = map(_constant, (0.707106781186547524, 0.693147180559945309, 1))


def log_float32(x: Array) -> Array:
    """log(x) of a float32 vector of finite numbers, none below the normal ones; NaN for NaN.

    Numbers that do not fill a register are computed singly, and all but correctly rounded.
    """
    part, exponent = np.frexp(x)  # from 1/2 on, below 1
    is_low = part < _ROOT_OF_HALF
    r = part - _ONE
    r += part * is_low
    rows = r * _ROWS[0]
    for coefficients in _ROWS[1:]:
        rows += coefficients
        rows *= r
    p, q = rows[0], rows[1]
    q += _ONE
    p /= q
    p += (exponent - is_low).astype(np.float32) * _LN2
    whole = len(x) - len(x) % _LANES
    if whole < len(x):
        p[whole:] = np.log(x[whole:], dtype=np.float64)
    return np.asarray(p)
