"""GELU (Hendrycks and Gimpel, Gaussian Error Linear Units, 2016), exact or by tanh, and its gradient.

    exact          y = x F(x), F the normal distribution function     y' = F(x) + x f(x), f its density
    approximate    y = x (1 + tanh u) / 2, u = a (x + b x^3)          y' = (1 + tanh u + x (1 - tanh^2 u) u') / 2

Half types are computed in float32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from math import pi, sqrt

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, DataType
from ..dense import of_dense
from ..elementwise.erf import erf_float32
from ..elementwise.igamma import scipy_special
from ..half_types import in_float32
from ..registry import Construction, Kernel, kernel

_A, _B = sqrt(2 / pi), 0.044715


@kernel("Partita>Gelu")
def gelu(node: Construction) -> Kernel:
    """x times the share of the normal distribution that lies below x."""
    if node.attrs["approximate"]:
        return of_dense(in_float32(lambda x: x * _below_by_tanh(x), node.output_types[0]))
    below = _below(node.output_types[0])
    return of_dense(in_float32(lambda x: x * below(x), node.output_types[0]))


@kernel("Partita>GeluGrad")
def gelu_grad(node: Construction) -> Kernel:
    """The slope of `gelu` at x, times the gradient of its output."""
    slope = _slope_by_tanh if node.attrs["approximate"] else _exact_slope(_below(node.output_types[0]))

    def gradient(d_y: Array, x: Array) -> Array:
        if d_y.shape != x.shape:
            raise InvalidArgumentError(
                f"d_y has the shape {shape_text(d_y.shape)} and x {shape_text(x.shape)}; give equal ones"
            )
        return np.asarray(d_y * slope(x))

    return of_dense(in_float32(gradient, node.output_types[0]))


def _below(dtype: DataType) -> Callable[[Array], Array]:
    """The normal distribution function."""
    erf = scipy_special("erf") if dtype is DataType.DOUBLE else erf_float32
    return lambda x: (1 + erf(x * x.dtype.type(sqrt(0.5)))) * x.dtype.type(0.5)


def _exact_slope(below: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda x: below(x) + x * np.exp(np.square(x) * x.dtype.type(-0.5)) * x.dtype.type(1 / sqrt(2 * pi))


def _below_by_tanh(x: Array) -> Array:
    return np.asarray((1 + np.tanh(_inner(x))) * x.dtype.type(0.5))


def _inner(x: Array) -> Array:
    return np.asarray((x + np.square(x) * x * x.dtype.type(_B)) * x.dtype.type(_A))


def _slope_by_tanh(x: Array) -> Array:
    tanh = np.tanh(_inner(x))
    inner_slope = (1 + np.square(x) * x.dtype.type(3 * _B)) * x.dtype.type(_A)
    return np.asarray((1 + tanh + x * (1 - np.square(tanh)) * inner_slope) * x.dtype.type(0.5))
