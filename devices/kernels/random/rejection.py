"""Random numbers of distributions that are drawn by rejection: gamma and Poisson, TensorFlow's for the same seeds.

Every number draws from a part of the stream of its own, so its redraws do not change other numbers. All numbers are
drawn at once, the rejected ones again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....graph.dtypes import Array, numpy_dtype
from ..elementwise.igamma import scipy_special
from ..registry import Construction, Kernel, kernel
from . import philox
from .draws import as_shape
from .philox import Position
from .random_ops import RESERVED, generator_of

_DOUBLE = np.dtype(np.float64)
_SMALL_RATE = 10.0  # for lower rates, Poisson numbers are found by counting (Knuth)
_Draw = Callable[[Array, np.dtype[Any]], Array]
_DRAWS: tuple[_Draw, ...] = (philox.uniform_from, philox.normal_from)


class _Lanes:
    """One lane per number: a stream position, and the unused part of the last two uniform and normal draws."""

    def __init__(self, place: Position, lanes: Array) -> None:
        self._place = place
        self._block = lanes.astype(np.uint64) * np.uint64(RESERVED)
        self._drawn: dict[_Draw, Array] = {draw: np.empty((len(lanes), 2)) for draw in _DRAWS}
        self._left: dict[_Draw, Array] = {draw: np.zeros(len(lanes), np.intp) for draw in _DRAWS}

    def uniform(self, lanes: Array) -> Array:
        """A number in [0, 1) for each of some lanes."""
        return self._next(philox.uniform_from, lanes)

    def normal(self, lanes: Array) -> Array:
        """A standard normal number for each of some lanes."""
        return self._next(philox.normal_from, lanes)

    def _next(self, draw: _Draw, lanes: Array) -> Array:
        drawn, unused = self._drawn[draw], self._left[draw]
        empty = lanes[unused[lanes] == 0]
        if empty.size:
            drawn[empty] = draw(philox.blocks(self._place, self._block[empty]), _DOUBLE)
            self._block[empty] += np.uint64(1)
            unused[empty] = 2
        unused[lanes] -= 1
        return drawn[lanes, unused[lanes]]


Sampler = Callable[[_Lanes, Array], Array]
"""parameters by lane -> numbers by lane"""


def _gamma(lanes: _Lanes, alpha: Array) -> Array:
    """Gamma numbers of scale 1 (Marsaglia and Tsang 2000); for alpha below 1 those of alpha + 1, scaled."""
    result = np.empty(len(alpha))
    is_exponential = alpha == 1.0
    plain = np.flatnonzero(is_exponential)
    result[plain] = -np.log1p(-lanes.uniform(plain))
    is_small = alpha < 1.0
    d = alpha + np.where(is_small, 2.0 / 3.0, -1.0 / 3.0)
    c = 1.0 / 3.0 / np.sqrt(d)
    pending = np.flatnonzero(~is_exponential)
    while pending.size:
        x = lanes.normal(pending)
        v = 1.0 + c[pending] * x
        pending_now, x, v = pending[v > 0], x[v > 0], v[v > 0] ** 3
        u = lanes.uniform(pending_now)
        accepted = (u < 1.0 - 0.0331 * (x * x) * (x * x)) | (
            np.log(u) < 0.5 * x * x + d[pending_now] * (1.0 - v + np.log(v))
        )
        result[pending_now[accepted]] = d[pending_now[accepted]] * v[accepted]
        pending = np.setdiff1d(pending, pending_now[accepted], assume_unique=True)
    small = np.flatnonzero(is_small)
    result[small] *= lanes.uniform(small) ** (1.0 / alpha[small])
    return result


def _poisson(lanes: _Lanes, rate: Array) -> Array:
    """Poisson numbers; NaN for a rate that is negative or not finite."""
    result = np.full(len(rate), np.nan)
    is_right = np.isfinite(rate) & (rate >= 0)
    _count_out(lanes, rate, np.flatnonzero(is_right & (rate < _SMALL_RATE)), result)
    _transform_and_reject(lanes, rate, np.flatnonzero(is_right & (rate >= _SMALL_RATE)), result)
    return result


def _count_out(lanes: _Lanes, rate: Array, pending: Array, result: Array) -> None:
    """The number of uniform numbers whose product stays above exp(-rate) (Knuth)."""
    product, count = np.ones(len(rate)), np.zeros(len(rate))
    while pending.size:
        product[pending] *= lanes.uniform(pending)
        is_done = product[pending] <= np.exp(-rate[pending])
        result[pending[is_done]] = count[pending[is_done]]
        pending = pending[~is_done]
        count[pending] += 1


def _transform_and_reject(lanes: _Lanes, rate: Array, pending: Array, result: Array) -> None:
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
        sizes = as_shape(shape)
        parameters = np.asarray(parameter, np.float64).reshape(-1)
        per_parameter = int(np.prod(sizes, dtype=np.int64))
        count = per_parameter * len(parameters)
        if not count:
            return np.empty((*sizes, *np.shape(parameter)), dtype)
        lanes = _Lanes(generator().reserve(count * RESERVED), np.arange(count))
        drawn = sampler(lanes, np.repeat(parameters, per_parameter)).reshape(len(parameters), per_parameter)
        return drawn.T.reshape(*sizes, *np.shape(parameter)).astype(dtype)

    return sample


@kernel("RandomGamma")
def random_gamma(node: Construction) -> Kernel:
    """Gamma numbers of shape parameter alpha and scale 1."""
    return _sampled(node, _gamma)


@kernel("RandomPoisson", "RandomPoissonV2")
def random_poisson(node: Construction) -> Kernel:
    """Poisson numbers of rate lambda."""
    return _sampled(node, _poisson)
