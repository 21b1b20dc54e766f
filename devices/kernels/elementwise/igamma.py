"""Derivatives of the regularised incomplete gamma function P(a, x) with respect to a, which scipy does not have.

Computed in float64 for a > 0 and x >= 0, by the power series below x = a + 1 and by the continued fraction above it,
each with its derivative term by term. 0 at x = 0 and at infinity, NaN outside the domain. Formulas: Abramowitz and
Stegun 6.5.29 and 6.5.31.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from ....graph.dtypes import Array

_MAX_TERMS = 20_000
_PRECISION = 1e-17
_HUGE = 1e100


def scipy_special(name: str) -> Any:
    """The function of that name in scipy.special; scipy is imported on the first call."""
    return getattr(importlib.import_module("scipy.special"), name)


def _series(a: Array, x: Array) -> tuple[Array, Array]:
    """S and dS/da, where P = x^a e^-x / gamma(a + 1) * S and S = sum of x^n / ((a + 1) ... (a + n))."""
    term, slope = np.ones_like(x), np.zeros_like(x)
    total, total_slope = term.copy(), slope.copy()
    for n in range(1, _MAX_TERMS):
        ratio = x / (a + n)
        term = term * ratio
        slope = slope * ratio - term / (a + n)
        total += term
        total_slope += slope
        if np.all((term <= _PRECISION * total) & (np.abs(slope) <= _PRECISION * np.abs(total_slope))):
            break
    return total, total_slope


def _fraction(a: Array, x: Array) -> tuple[Array, Array]:
    """F and dF/da, where 1 - P = x^a e^-x / gamma(a) * F and F = 1/(x+1-a- 1(1-a)/(x+3-a- 2(2-a)/(x+5-a- ...)))."""
    zero, one = np.zeros_like(x), np.ones_like(x)
    # Convergents A/B of the fraction: the last two of each, and their derivatives.
    a0, b0, a1, b1 = zero, one, one, x + 1 - a
    da0, db0, da1, db1 = zero, zero, zero, -one
    value, slope = a1 / b1, a1 / (b1 * b1)
    for n in range(1, _MAX_TERMS):
        bn, an = x + (2 * n + 1) - a, n * (a - n)
        a2, b2 = bn * a1 + an * a0, bn * b1 + an * b0
        da2 = bn * da1 - a1 + an * da0 + n * a0
        db2 = bn * db1 - b1 + an * db0 + n * b0
        scale = np.where(np.abs(b2) > _HUGE, 1 / _HUGE, 1.0)
        a0, b0, da0, db0 = a1 * scale, b1 * scale, da1 * scale, db1 * scale
        a1, b1, da1, db1 = a2 * scale, b2 * scale, da2 * scale, db2 * scale
        new_value = a1 / b1
        new_slope = (da1 - new_value * db1) / b1
        done = (np.abs(new_value - value) <= 1e-16 * np.abs(value)) & (
            np.abs(new_slope - slope) <= 1e-16 * np.abs(slope)
        )
        value, slope = new_value, new_slope
        if np.all(done | ~np.isfinite(value)):
            break
    return value, slope


def _relative_derivative(a: Array, x: Array) -> Array:
    """dP/da divided by the density x^(a-1) e^-x / gamma(a), for 1-d float64 a > 0 and x > 0."""
    psi = scipy_special("psi")
    result = np.empty_like(x)
    small = x <= a + 1
    if small.any():
        at, below = a[small], x[small]
        total, slope = _series(at, below)
        result[small] = below / at * ((np.log(below) - psi(at + 1)) * total + slope)
    if not small.all():
        at, above = a[~small], x[~small]
        value, slope = _fraction(at, above)
        result[~small] = -above * ((np.log(above) - psi(at)) * value + slope)
    return result


def _over_domain(a: Array, x: Array, with_density: bool) -> Array:
    wide_a, wide_x = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(x, np.float64))
    result = np.full(wide_x.shape, np.nan)
    result[(wide_x == 0) | ((wide_x == np.inf) & (wide_a > 0))] = 0.0
    inside = (wide_x > 0) & (wide_a > 0) & np.isfinite(wide_x) & np.isfinite(wide_a)
    at, value = wide_a[inside], wide_x[inside]
    derivative = _relative_derivative(at, value)
    if with_density:
        derivative = derivative * np.exp((at - 1) * np.log(value) - value - scipy_special("gammaln")(at))
    result[inside] = derivative
    return result.astype(x.dtype)


def igamma_grad_a(a: Array, x: Array) -> Array:
    """dP(a, x)/da in the type of x."""
    return _over_domain(a, x, with_density=True)


def random_gamma_grad(alpha: Array, sample: Array) -> Array:
    """d sample / d alpha, in the type of sample: -(dP/d alpha) / density, as P(alpha, sample) does not change."""
    return -_over_domain(alpha, sample, with_density=False)
