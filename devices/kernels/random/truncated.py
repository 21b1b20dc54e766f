"""Normal numbers between bounds, with a mean and a deviation of each batch: TensorFlow's for the same seeds.

A batch draws in one of three ways (Robert 1995, Simulation of truncated normal variables), by where the bounds are:
normal numbers that lie between wide bounds are kept; between close bounds uniform numbers are kept by the density; in a
tail exponential ones are. Batches draw one after another from one stream, each from a block of its own on. TensorFlow
cuts large outputs at batches that depend on its number of threads; these numbers are those of one thread.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from math import prod
from typing import NamedTuple

import numpy as np

from ....errors import InternalError, InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..checks import require
from ..registry import Construction, Kernel, kernel
from . import philox
from .draws import as_shape
from .lanes import per_parameter
from .philox import Position
from .random_ops import generator_of, scrambled
from .words import Words

_WIDE = 1.3  # deviations from the mean to a bound, from which on normal numbers are drawn
_MOST_REJECTED = 1000  # in a row
_MOST_ROUNDS = 1 << 15  # at a time
_BATCH = 100  # numbers of a batch where all have the same parameters

# words of rounds [rounds, words] -> numbers and whether each is kept [rounds, numbers]
Propose = Callable[[Array], tuple[Array, Array]]


class _Proposal(NamedTuple):
    """A way to draw numbers of mean 0 and deviation 1: how many words one round takes, and the round."""

    name: str
    words: int
    propose: Propose


def _normal(low: np.floating, high: np.floating) -> _Proposal:
    def propose(words: Array) -> tuple[Array, Array]:
        numbers = philox.normal_from(words, low.dtype)
        return numbers, (numbers >= low) & (numbers <= high)

    return _Proposal("randn", 4, propose)


def _uniform(low: np.floating, high: np.floating) -> _Proposal:
    scalar = low.dtype.type
    largest = scalar(0) if low < 0 else low * low

    def propose(words: Array) -> tuple[Array, Array]:
        numbers = philox.uniform_from(words[:, :4], low.dtype) * (high - low) + low
        density = np.exp((largest - numbers * numbers) / scalar(2))
        return numbers, philox.uniform_from(words[:, 4:], low.dtype) <= density

    return _Proposal("uniform", 8, propose)


def _exponential(low: np.floating, high: np.floating) -> _Proposal:
    scalar = low.dtype.type
    rate = (low + np.sqrt(low * low + scalar(4))) / scalar(2)

    def propose(words: Array) -> tuple[Array, Array]:
        uniform = philox.uniform_from(words, low.dtype)
        numbers = -np.log(uniform[:, 0::2]) / rate + low
        distance = rate - numbers if low < rate else low - rate
        density = np.exp(-distance * distance / scalar(2))
        return numbers, (uniform[:, 1::2] <= density) & (numbers < high)

    return _Proposal("exponential distribution", 4, propose)


def _proposal(low: np.floating, high: np.floating) -> _Proposal:
    """The way for these bounds, of which `low` is nearer to the mean, or both lie on its sides."""
    if (low < -_WIDE and high >= 0) or (high > _WIDE and low <= 0):
        return _normal(low, high)
    scalar = low.dtype.type
    root = np.sqrt(low * low + scalar(4))
    close = scalar(2) * np.exp(scalar(0.5) + (low * (low - root)) / scalar(4)) / (low + root)
    return _uniform(low, high) if high - low < close else _exponential(low, high)


def _fill(words: Words, proposal: _Proposal, out: Array, each: int) -> None:
    """Fills batches of `each` numbers with the first that are kept, and drops what their last rounds leave over."""
    filled, rejected = 0, 0
    while filled < len(out):
        rounds = min(max((len(out) - filled) // 2, 4), _MOST_ROUNDS)
        numbers, is_kept = proposal.propose(words.peek(rounds * proposal.words).reshape(rounds, -1))
        kept, size = np.flatnonzero(is_kept), numbers.shape[1]
        chosen, used = _batches(kept, filled, len(out), each, size)
        out[filled : filled + len(chosen)] = numbers.reshape(-1)[chosen]
        filled += len(chosen)
        rounds = used if filled == len(out) else rounds
        gaps = np.diff(kept[kept < rounds * size], prepend=-1 - rejected, append=rounds * size)
        if gaps.max() > _MOST_REJECTED:
            raise InternalError(f"TruncatedNormal {proposal.name} rejection sampler failed to accept a sample.")
        rejected = int(gaps[-1]) - 1
        words.take(proposal.words * rounds)


def _batches(kept: Array, filled: int, total: int, each: int, size: int) -> tuple[Array, int]:
    """Which of the numbers `kept` the batches take, and after how many rounds of `size` numbers the last one ends."""
    chosen, place = [kept[:0]], 0
    while filled < total:
        first = int(np.searchsorted(kept, place))
        own = kept[first : first + min(each - filled % each, total - filled)]
        if not own.size:
            break
        chosen.append(own)
        filled += len(own)
        place = (int(own[-1]) // size + 1) * size
    return np.concatenate(chosen), place // size


def _draw(place: Position, each: int, total: int, parameters: tuple[Array, ...]) -> Array:
    """`total` numbers, `each` of them per batch; parameters are vectors with one value, or with one per batch."""
    means, deviations, lows, highs = parameters
    is_right = (deviations > 0) & (lows < highs) & (np.isfinite(lows) | np.isfinite(highs))
    require(bool(is_right.all()), "Invalid parameters")
    # A bound near the mean, or in its tail, becomes the lower one.
    is_turned = (np.isinf(lows) & (lows < 0)) | (highs < means)
    scales = np.where(is_turned, -deviations, deviations)
    nearer = (np.where(is_turned, highs, lows) - means) / scales
    farther = (np.where(is_turned, lows, highs) - means) / scales
    proposals = [_proposal(low, high) for low, high in zip(nearer, farther, strict=True)]
    words, out = Words(place, total // 2), np.empty(total, means.dtype)
    # Batches of the same parameters are filled together.
    run = total if len(proposals) == 1 else each
    for batch, proposal in enumerate(proposals):
        own = out[batch * run : (batch + 1) * run]
        _fill(words, proposal, own, each)
        own *= scales[batch]
        own += means[batch]
    return out


@kernel("ParameterizedTruncatedNormal")
def parameterized_truncated_normal(node: Construction) -> Kernel:
    """Numbers by the seeds of the node, in which each row has parameters of its own, or all have the same."""
    generator = generator_of(node)

    def sample(shape: Array, *parameters: Array) -> Array:
        if shape.ndim != 1:
            raise InvalidArgumentError(f"Input shape should be a vector, got shape: {shape_text(shape.shape)}")
        sizes = as_shape(shape)
        require(len(sizes) > 0, f"Shape tensor must not be empty, got Tensor<type: {shape.dtype} shape: [0] values: >")
        _check_vectors(sizes[0], parameters)
        total = prod(sizes)
        if not total:
            return np.empty(sizes, parameters[0].dtype)
        is_one = all(values.size == 1 for values in parameters)
        each = _BATCH if is_one else total // sizes[0]
        batches = -(-total // each)
        place = generator().reserve(batches * 2 * _MOST_REJECTED * (each + 3) // 4)
        count = 1 if is_one else batches
        vectors = tuple(np.broadcast_to(values.reshape(-1), count) for values in parameters)
        return _draw(place, each, total, vectors).reshape(sizes)

    return sample


def _check_vectors(rows: int, parameters: tuple[Array, ...]) -> None:
    """InvalidArgumentError unless parameters are scalars or vectors, of one element or, if any has more, of `rows`."""
    for name, values in zip(("means", "stddevs", "minvals", "maxvals"), parameters, strict=True):
        text = shape_text(values.shape)
        require(values.ndim <= 1, f"Input {name} should be a scalar or vector, got shape: {text}")
        require(values.size in (1, rows), f"Input {name} should have length 1 or shape[0], got shape: {text}")


def _broadcast_shape(shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    try:
        return reduce(np.broadcast_shapes, shapes)
    except ValueError:
        texts = ", ".join(map(shape_text, shapes))
        raise InvalidArgumentError(f"Parameters must be broadcastable to each other, got shapes: {texts}") from None


@kernel("StatelessParameterizedTruncatedNormal")
def stateless_parameterized_truncated_normal(node: Construction) -> Kernel:
    """Numbers by the seed given; parameters broadcast to the last sizes of the shape."""

    def sample(shape: Array, seed: Array, *parameters: Array) -> Array:
        if shape.ndim != 1:
            raise InvalidArgumentError(f"Input shape should be a vector, got shape: {shape_text(shape.shape)}")
        sizes, place = as_shape(shape), scrambled(seed)
        full = _broadcast_shape([values.shape for values in parameters])
        each, total = per_parameter(sizes, full), prod(sizes)
        if not total:
            return np.empty(sizes, parameters[0].dtype)
        vectors = tuple(np.broadcast_to(values, full).reshape(-1) for values in parameters)
        drawn = _draw(place, each, total, vectors)
        return np.ascontiguousarray(drawn.reshape(-1, each).T).reshape(sizes)

    return sample
