"""Kernels of the special functions: error, gamma, beta, Bessel and Fresnel functions and related ones.

scipy is imported when the first such node is compiled, since that import takes longer than most graphs run. Half types
are computed in float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, DataType
from ..half_types import in_float32
from ..registry import Construction, Kernel, kernel
from .broadcasting import broadcasting
from .erf import erf_float32
from .igamma import igamma_grad_a, random_gamma_grad, scipy_special

_SCIPY = {
    "Erf": "erf",
    "Erfc": "erfc",
    "Erfinv": "erfinv",
    "Lgamma": "gammaln",
    "Ndtri": "ndtri",
    "BesselI0": "i0",
    "BesselI0e": "i0e",
    "BesselI1": "i1",
    "BesselI1e": "i1e",
    "BesselJ0": "j0",
    "BesselJ1": "j1",
    "BesselK0": "k0",
    "BesselK0e": "k0e",
    "BesselK1": "k1",
    "BesselK1e": "k1e",
    "BesselY0": "y0",
    "BesselY1": "y1",
    "Dawsn": "dawsn",
    "Expint": "expi",
    "Spence": "spence",
    "Digamma": "psi",
    "Igamma": "gammainc",
    "Igammac": "gammaincc",
    "Zeta": "zeta",
}


def _nan_at_poles(x: Array, value: Array) -> Array:
    return np.where((x <= 0) & (x == np.floor(x)), np.nan, value)


def _zeta_limits(value: Array, x: Array, q: Array) -> Array:
    at_pole = (q <= 0) & (q == np.floor(q)) & (x > 1)
    return np.where(at_pole, np.where(x % 2 == 0, np.inf, np.nan), value)


def _limit_at_zero(limit: float) -> Kernel:
    return lambda value, x: np.where(x < 0, limit, value)


# Where TensorFlow's functions differ from scipy's, at or beyond the edge of the domain: f(scipy's value, arguments).
_EDGES: dict[str, Kernel] = {
    "Lgamma": lambda value, x: np.where(x == -np.inf, np.inf, value),
    "Digamma": lambda value, x: _nan_at_poles(x, value),
    "Expint": lambda value, x: np.where((x < 0) | (x == np.inf), np.nan, value),
    "Erf": lambda value, x: np.where(np.isinf(x * x), np.nan, value),
    "Igamma": lambda value, a, x: np.where(x == 0, 0.0, np.where(a <= 0, np.nan, value)),
    "Igammac": lambda value, a, x: np.where((a <= 0) & (x > 0), np.nan, value),
    "Zeta": _zeta_limits,
    **dict.fromkeys(("BesselY0", "BesselY1"), _limit_at_zero(-np.inf)),
    **dict.fromkeys(("BesselK0", "BesselK0e", "BesselK1", "BesselK1e"), _limit_at_zero(np.inf)),
}


@kernel(*_SCIPY)
def special_function(node: Construction) -> Kernel:
    """A special function of one variable, or of several that broadcast."""
    if node.op == "Erf" and node.output_types[0] is not DataType.DOUBLE:
        return broadcasting(in_float32(erf_float32, node.output_types[0]))
    function = scipy_special(_SCIPY[node.op])
    edges = _EDGES.get(node.op)
    if edges is not None:
        function = _corrected(function, edges)
    return broadcasting(in_float32(function, node.output_types[0]))


def _corrected(function: Kernel, edges: Kernel) -> Kernel:
    return lambda *x: edges(function(*x), *x).astype(x[0].dtype)


@kernel("Betainc")
def incomplete_beta(node: Construction) -> Kernel:
    """The regularised incomplete beta function of three tensors of one shape, or scalars in their place."""
    function = in_float32(scipy_special("betainc"), node.output_types[0])

    def checked(a: Array, b: Array, x: Array) -> Any:
        for (one, left), (other, right) in (("a", a), ("b", b)), (("a", a), ("x", x)), (("b", b), ("x", x)):
            if left.ndim and right.ndim and left.shape != right.shape:
                raise InvalidArgumentError(
                    f"Shapes of {one} and {other} are inconsistent: "
                    f"{shape_text(left.shape)} vs. {shape_text(right.shape)}"
                )
        return function(a, b, x)

    return checked


@kernel("FresnelSin", "FresnelCos")
def fresnel(node: Construction) -> Kernel:
    """The Fresnel integral S(x) or C(x), with pi/2 t^2 under the integral."""
    both = scipy_special("fresnel")
    which = 0 if node.op == "FresnelSin" else 1
    return lambda x: both(x)[which]


@kernel("Polygamma")
def polygamma(node: Construction) -> Kernel:
    """The a-th derivative of digamma at x; NaN unless a is a whole number >= 0.

    (-1)^(a+1) a! zeta(a+1, x) for a > 0, Abramowitz and Stegun 6.4.10.
    """
    psi, zeta, gamma = scipy_special("psi"), scipy_special("zeta"), scipy_special("gamma")
    dtype = node.output_types[0]

    def derivative(a: Array, x: Array) -> Array:
        order, at = np.asarray(a, np.float64), np.asarray(x, np.float64)
        sign = np.where(order % 2 == 0, -1.0, 1.0)
        higher = sign * gamma(order + 1) * _zeta_limits(zeta(order + 1, at), order + 1, at)
        whole = np.where(order == 0, _nan_at_poles(at, psi(at)), higher)
        result: Array = np.where((order == np.floor(order)) & (order >= 0), whole, np.nan).astype(x.dtype)
        return result

    return broadcasting(in_float32(derivative, dtype))


@kernel("IgammaGradA")
def igamma_derivative(node: Construction) -> Kernel:
    """d/da of the regularised lower incomplete gamma function P(a, x)."""
    return broadcasting(in_float32(igamma_grad_a, node.output_types[0]))


@kernel("RandomGammaGrad")
def gamma_sample_derivative(node: Construction) -> Kernel:
    """d sample / d alpha for samples of the gamma distribution of shape alpha."""
    return broadcasting(in_float32(random_gamma_grad, node.output_types[0]))
