"""Random numbers of distributions that are drawn by rejection: gamma and Poisson, TensorFlow's for the same seeds."""

from __future__ import annotations

from math import prod

import numpy as np

from ....graph.dtypes import Array, numpy_dtype
from ..elementwise.igamma import scipy_special
from ..registry import Construction, Kernel, kernel
from .draws import as_shape
from .lanes import GeneratorLanes, Sampler, draw, per_parameter
from .philox import Position
from .random_ops import RESERVED, generator_of, place_of, scrambled

_SMALL_RATE = 10.0  # for lower rates, Poisson numbers are found by counting (Knuth)


def _gamma(lanes: GeneratorLanes, alpha: Array) -> Array:
    """Gamma numbers of scale 1 (Marsaglia and Tsang 2000); for alpha below 1 those of alpha + 1, scaled.

    NaN where no number would ever be accepted: for an alpha that is none, or too far below zero.
    """
    result = np.full(len(alpha), np.nan)
    is_exponential = alpha == 1.0
    plain = np.flatnonzero(is_exponential)
    result[plain] = -np.log1p(-lanes.uniform(plain))
    is_small = alpha < 1.0
    d = alpha + np.where(is_small, 2.0 / 3.0, -1.0 / 3.0)
    c = 1.0 / 3.0 / np.sqrt(d)
    pending = np.flatnonzero(~is_exponential & (d > 0))
    while pending.size:
        x = lanes.normal(pending)
        v = 1.0 + c[pending] * x
        is_drawn = v > 0  # the others are rejected without a uniform number
        drawn, x, v = pending[is_drawn], x[is_drawn], v[is_drawn] ** 3
        u = lanes.uniform(drawn)
        is_accepted = (u < 1.0 - 0.0331 * (x * x) * (x * x)) | (
            np.log(u) < 0.5 * x * x + d[drawn] * (1.0 - v + np.log(v))
        )
        result[drawn[is_accepted]] = d[drawn[is_accepted]] * v[is_accepted]
        is_drawn[is_drawn] = is_accepted
        pending = pending[~is_drawn]
    small = np.flatnonzero(is_small)
    result[small] *= lanes.uniform(small) ** (1.0 / alpha[small])
    return result


def _poisson(lanes: GeneratorLanes, rate: Array) -> Array:
    """Poisson numbers; NaN for a rate that is negative or not finite."""
    result = np.full(len(rate), np.nan)
    is_right = np.isfinite(rate) & (rate >= 0)
    _count_out(lanes, rate, np.flatnonzero(is_right & (rate < _SMALL_RATE)), result)
    _transform_and_reject(lanes, rate, np.flatnonzero(is_right & (rate >= _SMALL_RATE)), result)
    return result


def _count_out(lanes: GeneratorLanes, rate: Array, pending: Array, result: Array) -> None:
    """The number of uniform numbers whose product stays above exp(-rate) (Knuth)."""
    product, count = np.ones(len(rate)), np.zeros(len(rate))
    while pending.size:
        product[pending] *= lanes.uniform(pending)
        is_done = product[pending] <= np.exp(-rate[pending])
        result[pending[is_done]] = count[pending[is_done]]
        pending = pending[~is_done]
        count[pending] += 1


def _transform_and_reject(lanes: GeneratorLanes, rate: Array, pending: Array, result: Array) -> None:
    """Transformed rejection with squeeze (Hörmann 1993, PTRS)."""
    b = 0.931 + 2.53 * np.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    while pending.size:
        u = lanes.uniform(pending) - 0.5
        v = lanes.uniform(pending)
        u_shifted = 0.5 - np.abs(u)
        k = np.floor((2.0 * a[pending] / u_shifted + b[pending]) * u + rate[pending] + 0.43)
        is_inside = (u_shifted >= 0.07) & (v <= 0.9277 - 3.6224 / (b[pending] - 2.0))
        is_out = (k < 0) | ((u_shifted < 0.013) & (v > u_shifted))
        s = np.log(v * inverse_alpha[pending] / (a[pending] / (u_shifted * u_shifted) + b[pending]))
        log_factorial = scipy_special("gammaln")(np.where(is_out, 0.0, k) + 1.0)
        t = -rate[pending] + k * np.log(rate[pending]) - log_factorial
        is_done = is_inside | (~is_out & (s <= t))
        result[pending[is_done]] = k[is_done]
        pending = pending[~is_done]


def _sampled(node: Construction, sampler: Sampler) -> Kernel:
    """The kernel of a stateful op: numbers of `shape` for every element of the parameter."""
    generator, dtype = generator_of(node), numpy_dtype(node.output_types[0])

    def sample(shape: Array, parameter: Array) -> Array:
        sizes = (*as_shape(shape), *np.shape(parameter))
        count = prod(sizes)
        if not count:
            return np.empty(sizes, dtype)
        place = generator().reserve(count * RESERVED)
        return draw(sampler, place, sizes, np.asarray(parameter, np.float64)).astype(dtype)

    return sample


def _stateless(node: Construction, sampler: Sampler) -> Kernel:
    """The kernel of an op whose stream a seed, or a key, a counter and an algorithm, give.

    The output's shape ends with that of the parameter, its last input.
    """
    dtype = numpy_dtype(node.output_types[0])

    def sample(shape: Array, *inputs: Array) -> Array:
        *where, parameter = inputs
        sizes = as_shape(shape)
        place: Position = scrambled(*where) if len(where) == 1 else place_of(*where)
        per_parameter(sizes, np.shape(parameter))
        if not prod(sizes):
            return np.empty(sizes, dtype)
        return draw(sampler, place, sizes, np.asarray(parameter, np.float64)).astype(dtype)

    return sample


@kernel("RandomGamma")
def random_gamma(node: Construction) -> Kernel:
    """Gamma numbers of shape parameter alpha and scale 1."""
    return _sampled(node, _gamma)


@kernel("StatelessRandomGammaV2", "StatelessRandomGammaV3")
def stateless_random_gamma(node: Construction) -> Kernel:
    """Gamma numbers of shape parameter alpha and scale 1."""
    return _stateless(node, _gamma)


@kernel("RandomPoisson", "RandomPoissonV2")
def random_poisson(node: Construction) -> Kernel:
    """Poisson numbers of rate lambda."""
    return _sampled(node, _poisson)


@kernel("StatelessRandomPoisson")
def stateless_random_poisson(node: Construction) -> Kernel:
    """Poisson numbers of rate lambda."""
    return _stateless(node, _poisson)
