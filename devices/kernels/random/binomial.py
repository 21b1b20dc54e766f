"""Binomial numbers: how many of `count` trials of probability `prob` succeed, TensorFlow's for the same seeds."""

from __future__ import annotations

from math import lgamma, log, pi, prod

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, numpy_dtype
from ..checks import require
from ..registry import Construction, Kernel, kernel
from .draws import as_shape
from .generators import drawing_state
from .lanes import GeneratorLanes, draw, per_parameter
from .philox import Position
from .random_ops import AUTO, RESERVED, scrambled

_MANY = 10.0  # expected successes, from which on the transformed rejection is used
# Blocks that a number may use without those of its neighbours: TensorFlow reserves fewer where it sums waits.
_RESERVED_FEW = 42
_RESERVED_PER_PARAMETER = 200


def _checked(shape: Array, counts: Array, probs: Array) -> tuple[tuple[int, ...], Array, Array]:
    """The output's shape, and both parameters of the shape to which they broadcast; InvalidArgumentError otherwise."""
    if shape.ndim != 1:
        raise InvalidArgumentError(f"Input shape should be a vector, got shape: {shape_text(shape.shape)}")
    sizes = as_shape(shape)
    try:
        both = np.broadcast_shapes(np.shape(counts), np.shape(probs))
    except ValueError:
        texts = shape_text(np.shape(counts)), shape_text(np.shape(probs))
        require(False, f"counts and probs must have compatible batch dimensions: {texts[0]} vs. {texts[1]}")
    per_parameter(sizes, both)
    return sizes, np.broadcast_to(counts, both), np.broadcast_to(probs, both)


def _draw(place: Position, sizes: tuple[int, ...], counts: Array, probs: Array) -> Array:
    """Numbers of shape `sizes` in float64; failures are counted where they are the rarer outcome."""
    is_rare = ~(probs > 0.5)
    # TensorFlow subtracts in the type of `probs`.
    rare = np.where(is_rare, probs, probs.dtype.type(1) - probs).astype(np.float64)
    wide = np.maximum(counts.astype(np.float64), 0)
    reserved = np.where(wide * rare >= _MANY, RESERVED, _RESERVED_FEW)
    drawn = draw(_binomial, place, sizes, wide, rare, reserved=reserved)
    return np.where(is_rare, drawn, wide - drawn)


def _binomial(lanes: GeneratorLanes, count: Array, prob: Array) -> Array:
    """Successes for probabilities up to 1/2; NaN for a count or a probability that is NaN."""
    result = np.where(np.isnan(count) | np.isnan(prob), np.nan, 0.0)
    is_open = (count > 0) & (prob > 0)
    is_many = count * prob >= _MANY
    _sum_waits(lanes, count, prob, np.flatnonzero(is_open & ~is_many), result)
    _transform_and_reject(lanes, count, prob, np.flatnonzero(is_open & is_many), result)
    return result


def _sum_waits(lanes: GeneratorLanes, count: Array, prob: Array, pending: Array, result: Array) -> None:
    """The number of geometric waits for a success that fit into `count` trials."""
    trials = np.zeros(len(count))
    while pending.size:
        trials[pending] += np.ceil(np.log(lanes.uniform(pending)) / np.log1p(-prob[pending]))
        pending = pending[trials[pending] <= count[pending]]
        result[pending] += 1


def _stirling_error(k: Array) -> Array:
    """log k! minus Stirling's formula for it: sqrt(2 pi) (k + 1)^(k + 1/2) exp(-k - 1)."""
    inverse = 1 / (k + 1)
    square = inverse * inverse
    series = (1 / 12 - (1 / 360 - square / 1260) * square) * inverse
    exact: Array = _EXACT[np.where((k >= 0) & (k < len(_EXACT)), k, 0).astype(np.intp)]
    return np.where(k < len(_EXACT), exact, series)


_EXACT = np.array([lgamma(k + 1) - log(2 * pi) / 2 - (k + 0.5) * log(k + 1) + k + 1 for k in range(10)])


def _transform_and_reject(lanes: GeneratorLanes, counts: Array, probs: Array, pending: Array, result: Array) -> None:
    """Transformed rejection with squeeze (Hörmann 1993, BTRS)."""
    while pending.size:
        n, p = counts[pending], probs[pending]
        deviation = np.sqrt(n * p * (1 - p))
        b = 1.15 + 2.53 * deviation
        a = -0.0873 + 0.0248 * b + 0.01 * p
        u = lanes.uniform(pending) - 0.5
        v = lanes.uniform(pending)
        u_shifted = 0.5 - np.abs(u)
        k = np.floor((2 * a / u_shifted + b) * u + n * p + 0.5)
        is_inside = (u_shifted >= 0.07) & (v <= 0.92 - 4.2 / b)
        is_possible = (k >= 0) & (k <= n)
        height = np.log(v * (2.83 + 5.1 / b) * deviation / (a / (u_shifted * u_shifted) + b))
        is_done = is_inside | (is_possible & (height <= _log_ratio(n, p, np.where(is_possible, k, 0.0))))
        result[pending[is_done]] = k[is_done]
        pending = pending[~is_done]


def _log_ratio(n: Array, p: Array, k: Array) -> Array:
    """The logarithm of the probability of k relative to that of the most frequent number."""
    odds = p / (1 - p)
    top = np.floor((n + 1) * p)
    ratio: Array = (top + 0.5) * np.log((top + 1) / (odds * (n - top + 1)))
    ratio += (n + 1) * np.log((n - top + 1) / (n - k + 1))
    ratio += (k + 0.5) * np.log(odds * (n - k + 1) / (k + 1))
    return ratio + _stirling_error(top) + _stirling_error(n - top) - _stirling_error(k) - _stirling_error(n - k)


@kernel("StatelessRandomBinomial")
def stateless_random_binomial(node: Construction) -> Kernel:
    """Numbers that the seed gives."""
    dtype = numpy_dtype(node.output_types[0])

    def sample(shape: Array, seed: Array, counts: Array, probs: Array) -> Array:
        sizes, *parameters = _checked(shape, counts, probs)
        place = scrambled(seed)
        return _draw(place, sizes, *parameters).astype(dtype) if prod(sizes) else np.empty(sizes, dtype)

    return sample


@kernel("StatefulRandomBinomial")
def stateful_random_binomial(node: Construction) -> Kernel:
    """Numbers from a generator."""
    dtype, reserve = numpy_dtype(node.output_types[0]), drawing_state(node)

    def sample(handle: Array, algorithm: Array, shape: Array, counts: Array, probs: Array) -> Array:
        if algorithm.ndim != 0:
            raise InvalidArgumentError(f"algorithm must be of shape [], not {shape_text(algorithm.shape)}")
        require(int(algorithm) != AUTO, f"Unsupported algorithm id: {AUTO}")  # TensorFlow leaves it out here
        sizes, *parameters = _checked(shape, counts, probs)
        batches = parameters[0].size
        blocks = batches * _RESERVED_PER_PARAMETER * (per_parameter(sizes, parameters[0].shape) + 3) // 4 * RESERVED
        place = reserve(handle, algorithm, blocks)
        return _draw(place, sizes, *parameters).astype(dtype) if prod(sizes) else np.empty(sizes, dtype)

    return sample
