"""The error function in float32 with TensorFlow's bits.

Each product, sum and quotient is rounded to float32 in a fixed order, so that a result does not depend on the position
in a tensor. Large tensors are computed part by part, so that the steps in between stay in the cache.
"""

from __future__ import annotations

import numpy as np

from ....graph.dtypes import Array

# The minimax approximation x * P(x^2) / Q(x^2), degrees 11 and 10, that Eigen (5.0) has for float32, limited to
# [-1, 1]: both polynomials as rows of one array, from the highest power down.
_ROWS = [
    np.array([[p], [q]], np.float32)
    for p, q in (
        (2.1237322e-6, 3.8918573e-5),
        (2.8619796e-4, 1.143296e-3),
        (3.6580483e-3, 1.4752088e-2),
        (5.2433021e-2, 1.12945676e-1),
        (1.8741608e-1, 4.994258e-1),
        (1.1283791, 1),
    )
]
_ONE, _GREATEST = np.array(1, np.float32), np.array(16, np.float32)  # beyond the greatest square the limit is reached
_PART = 1 << 14


def erf_float32(x: Array) -> Array:
    """2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x."""
    result = np.empty(x.shape, np.float32)
    numbers, results = np.ascontiguousarray(x).reshape(-1), result.reshape(-1)
    for start in range(0, numbers.size, _PART):
        _erf(numbers[start : start + _PART], results[start : start + _PART])
    return result


def _erf(x: Array, out: Array) -> None:
    square = x * x
    np.minimum(square, _GREATEST, out=square)
    rows = square * _ROWS[0]
    for coefficients in _ROWS[1:-1]:
        rows += coefficients
        rows *= square
    rows += _ROWS[-1]
    p, q = rows
    p *= x
    p /= q
    np.minimum(p, _ONE, out=p)
    np.maximum(p, -_ONE, out=out)
