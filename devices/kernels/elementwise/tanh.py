"""Tanh in float32 with TensorFlow's bits, since graphs that compare, sort or round its results depend on them.

Each product, sum and quotient is rounded to float32 in a fixed order, so that a result does not depend on the machine
or on the position in a tensor. Large tensors and other types use numpy's function.
"""

from __future__ import annotations

import numpy as np

from ....graph.dtypes import Array


def _constants(*values: float) -> list[Array]:
    return [np.array(value, np.float32) for value in values]  # 0-d arrays: the fastest operands


# The minimax approximation x * P(x^2) / Q(x^2), degrees 9 and 8, that Eigen (3.4 and later) documents for float32, from
# the highest power down; P ends in 1 too. Beyond the limits the quotient is 1.
_P = _constants(1.394553628e-8, 2.102733560e-5, 3.520756727e-3, 1.340216100e-1)
_Q = _constants(8.015776984e-7, 3.326951409e-4, 2.597254514e-2, 4.673548340e-1, 1)
_LEAST, _GREATEST = _constants(-7.90738964080810547, 7.90738964080810547)
_SCALAR_P, _SCALAR_Q, _LIMITS = ([*map(np.float32, values)] for values in (_P, _Q, (_LEAST, _GREATEST)))
_LARGE = 1 << 6  # larger arrays use numpy, twenty times as fast, at the cost of the last bit


def tanh_float32(x: Array) -> Array | np.float32:
    """The hyperbolic tangent of a float32 tensor; the order of operations (P = 1 + x^2 p) decides the last bit."""
    if x.size >= _LARGE:
        return np.asarray(np.tanh(x))
    if not x.ndim:
        return _of_one(np.float32(x))
    x = np.minimum(x, _GREATEST)
    np.maximum(x, _LEAST, out=x)
    square = x * x
    p, q = _series(_P, square), _series(_Q, square)
    np.multiply(square, x, square)
    np.multiply(p, square, p)
    np.add(p, x, p)
    np.divide(p, q, p)
    return p


def _series(coefficients: list[Array], x: Array) -> Array:
    """A polynomial by Horner's rule. One array with both would need fewer calls, which take longer to broadcast."""
    result: Array = x * coefficients[0]
    for coefficient in coefficients[1:-1]:
        np.add(result, coefficient, result)
        np.multiply(result, x, result)
    np.add(result, coefficients[-1], result)
    return result


def _of_one(x: np.float32) -> np.float32:
    """The same steps with numpy scalars, which for a single number are ten times as fast."""
    x = min(max(x, _LIMITS[0]), _LIMITS[1])  # NaN stays NaN
    square = x * x
    p, q = _SCALAR_P[0], _SCALAR_Q[0]
    for coefficient in _SCALAR_P[1:]:
        p = p * square + coefficient
    for coefficient in _SCALAR_Q[1:]:
        q = q * square + coefficient
    return np.float32((p * (square * x) + x) / q)
