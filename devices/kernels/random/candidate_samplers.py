"""Samples of classes for losses that do not look at all of them (sampled softmax, NCE), with TensorFlow's numbers.

    UniformCandidateSampler(true_classes [[3], [1]], num_sampled=2, range_max=5)
        -> sampled [4, 1], expected counts of the true classes [[0.4], [0.4]] and of the sampled ones [0.4, 0.4]

A unique sampler draws until it has enough different classes; the expected counts follow from the number of draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.dtypes import Array
from ..checks import require
from ..output_size import output_shape
from ..registry import Construction, Kernel, kernel
from . import philox
from .packed import double
from .random_ops import Generator, generator_of, start_of
from .unigrams import AliasTable, LearnedUnigrams, fixed_weights
from .words import FEW, RandomNumbers, Words, below_wide

_DOUBLE = np.dtype(np.float64)
_RESERVED_BLOCKS = 512  # per sample, however many draws it takes
_MOST_DRAWS = 1 << 16  # at a time
_MOST_TABLED = 1 << 16  # classes
_LOWEST = np.finfo(np.float32).min

DrawCandidates = Callable[[Words, int], RandomNumbers]
Probability = Callable[[Array], Array]


class Distribution(NamedTuple):
    """How a sampler draws numbers from words, and how likely a draw is to give a number (float32)."""

    draw: DrawCandidates
    probability: Probability


class _Options(NamedTuple):
    """The attrs that all samplers have."""

    true: int
    sampled: int
    unique: bool
    classes: int


def _options(node: Construction) -> _Options:
    sampled = int(node.attrs["num_sampled"])
    classes = int(node.attrs.get("range_max", sampled))
    return _Options(int(node.attrs["num_true"]), sampled, bool(node.attrs["unique"]), classes)


def _check(true_classes: Array, options: _Options) -> None:
    """InvalidArgumentError unless the classes are a matrix of numbers below the sampler's range."""
    require(true_classes.ndim == 2, "true_classes must be a matrix")
    columns = true_classes.shape[1]
    require(
        columns == options.true, f"true_classes must have num_true columns, expected: {columns} was: {options.true}"
    )
    require(not options.unique or options.sampled <= options.classes, "Sampler's range is too small.")
    output_shape((options.sampled,), np.dtype(np.int64))
    # Of unsigned numbers the negative ones are the largest.
    if np.maximum.reduce(true_classes.view(np.uint64), None, initial=0) >= options.classes:
        outside = true_classes[(true_classes < 0) | (true_classes >= options.classes)]
        require(False, f"`true_candidate` out of range [0, {options.classes}), received {outside[0]}")


def _different(draw: DrawCandidates, words: Words, count: int) -> tuple[Array, int]:
    """The first `count` different numbers in the order in which they are drawn, and the number of draws."""
    numbers: dict[int, None] = {}
    draws, at_once = 0, max(2 * count, 16)
    while True:
        drawn = draw(words, at_once)
        drawn = drawn if isinstance(drawn, list) else drawn.tolist()
        numbers.update(dict.fromkeys(drawn))  # a dict keeps the order in which its keys came
        if len(numbers) >= count:
            first = list(islice(numbers, count))
            return np.array(first, np.int64), draws + drawn.index(first[-1]) + 1
        draws, at_once = draws + at_once, min(2 * at_once, _MOST_DRAWS)


def _expected(probability: Array, sampled: int, draws: int) -> Array:
    """How often numbers of these probabilities are expected: among `sampled` draws, or at least once in `draws`."""
    if draws == sampled:
        return np.asarray(probability * np.float32(sampled))
    return np.asarray(-np.expm1(np.float32(draws) * np.log1p(-probability)))


def _sample(
    generator: Generator, distribution: Distribution, options: _Options, true_classes: Array
) -> tuple[Array, Array, Array]:
    words = Words(generator.reserve(options.sampled * _RESERVED_BLOCKS))
    if options.unique:
        numbers, draws = _different(distribution.draw, words, options.sampled)
    else:
        numbers, draws = np.asarray(distribution.draw(words, options.sampled), np.int64), options.sampled
    # Both sorts of classes at once: for few numbers the calls are what takes time.
    classes, num_true = np.concatenate([true_classes, numbers], None), true_classes.size
    expected = _expected(distribution.probability(classes), options.sampled, draws)
    return numbers, expected[:num_true].reshape(true_classes.shape), expected[num_true:]


def _sampler(node: Construction, distribution: Distribution) -> Kernel:
    """The kernel of a sampler whose distribution stays as it is."""
    options, generator = _options(node), generator_of(node)

    def sample(true_classes: Array) -> tuple[Array, Array, Array]:
        _check(true_classes, options)
        return _sample(generator(), distribution, options, true_classes)

    return sample


@kernel("UniformCandidateSampler")
def uniform_candidate_sampler(node: Construction) -> Kernel:
    """All classes are equally likely."""
    size = int(node.attrs["range_max"])
    each = np.float32(1 / size)
    return _sampler(
        node,
        Distribution(
            lambda words, count: below_wide(words, size, count),
            lambda numbers: np.full(numbers.shape, each, np.float32),
        ),
    )


@kernel("LogUniformCandidateSampler")
def log_uniform_candidate_sampler(node: Construction) -> Kernel:
    """Class c has the probability log((c + 2) / (c + 1)) / log(range + 1): Zipf's law, frequent classes first."""
    size = int(node.attrs["range_max"])
    log_range = math.log1p(size)

    def draw(words: Words, count: int) -> RandomNumbers:
        if count <= FEW:
            halves = words.take(2 * count).tolist()
            few = map(double, halves[0::2], halves[1::2])
            return [(int(math.exp(point * log_range)) - 1) % size for point in few]
        points = philox.uniform_from(words.take(2 * count), _DOUBLE)
        return (np.exp(points * log_range).astype(np.int64) - 1) % size

    def probability(numbers: Array) -> Array:
        return np.asarray(np.log((numbers + 2.0) / (numbers + 1.0)) / log_range, np.float32)

    return _sampler(node, Distribution(draw, _tabled(probability, size)))


def _tabled(probability: Probability, size: int) -> Probability:
    """The probabilities of classes, looked up in a table unless there are very many."""
    if size > _MOST_TABLED:
        return probability
    table = probability(np.arange(size))
    return lambda numbers: np.asarray(table[numbers])


@kernel("FixedUnigramCandidateSampler")
def fixed_unigram_candidate_sampler(node: Construction) -> Kernel:
    """Classes by weights that attrs or a file give."""
    attrs: dict[str, Any] = dict(node.attrs)  # Any: attrs of several types
    path, unigrams = attrs["vocab_file"].decode(), attrs["unigrams"]
    require(bool(path or unigrams), "Must provide either vocab_file or unigrams.")
    require(not path or not unigrams, "Must only provide one of vocab_file and unigrams.")
    places = (int(attrs[name]) for name in ("num_reserved_ids", "num_shards", "shard"))
    weights, size = fixed_weights(unigrams, path, attrs["distortion"], *places), int(attrs["range_max"])
    if len(weights) != size:
        raise InvalidArgumentError(f"range is {size} must be equal to weights size  {len(weights)}")
    # TensorFlow would draw for ever.
    possible = int(np.count_nonzero(weights))
    require(
        not attrs["unique"] or int(attrs["num_sampled"]) <= possible,
        f"Sampler's range is too small: {possible} classes have a weight.",
    )
    table = AliasTable(weights)
    return _sampler(node, Distribution(table.draw, lambda numbers: np.asarray(table.probabilities[numbers])))


class _Learner(Generator):
    """A generator, and what its sampler has learned."""

    __slots__ = ("unigrams",)

    def __init__(self, node: Construction) -> None:
        super().__init__(start_of(node))
        self.unigrams = LearnedUnigrams(int(node.attrs["range_max"]))


@kernel("LearnedUnigramCandidateSampler", "ThreadUnsafeUnigramCandidateSampler")
def learned_unigram_candidate_sampler(node: Construction) -> Kernel:
    """Classes as often as they were true ones in earlier runs, plus once each."""
    options, state, name = _options(node), node.state, node.name

    def sample(true_classes: Array) -> tuple[Array, Array, Array]:
        _check(true_classes, options)
        learner: _Learner = state.generator(name, lambda: _Learner(node))
        unigrams = learner.unigrams
        results = _sample(learner, Distribution(unigrams.draw, unigrams.probability), options, true_classes)
        unigrams.learn(true_classes.reshape(-1))
        return results

    return sample


@kernel("AllCandidateSampler")
def all_candidate_sampler(node: Construction) -> Kernel:
    """All classes, each once."""
    options = _options(node)

    def sample(true_classes: Array) -> tuple[Array, Array, Array]:
        _check(true_classes, options)
        return (
            np.arange(options.sampled, dtype=np.int64),
            np.ones(true_classes.shape, np.float32),
            np.ones(options.sampled, np.float32),
        )

    return sample


@kernel("ComputeAccidentalHits")
def compute_accidental_hits(node: Construction) -> Kernel:
    """Where a true class was sampled: its row, the place of the sample, and the lowest float as its weight."""
    count = int(node.attrs["num_true"])

    def hits(true_classes: Array, sampled: Array) -> tuple[Array, Array, Array]:
        is_matrix = true_classes.ndim == 2 and true_classes.shape[1] == count
        require(is_matrix, "true_candidates must be a batch_size * num_true matrix")
        require(
            sampled.ndim == 1, "sampled_candidates must be a vector, which is typically an output from CandidateSampler"
        )
        # Of a class that was sampled several times the last place counts.
        places = {number: place for place, number in enumerate(sampled.tolist())}
        found = [(n, number) for n, number in enumerate(true_classes.reshape(-1).tolist()) if number in places]
        rows = np.array([n // count for n, _ in found], np.int32)
        return rows, np.array([places[number] for _, number in found], np.int64), np.full(len(found), _LOWEST)

    return hits
