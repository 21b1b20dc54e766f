"""Random numbers, with and without state: bit for bit TensorFlow's for the same seeds.

A stateful node (seeds are attrs) repeats its numbers after its device was reset; a stateless op (seeds are inputs) is a
pure function.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, numpy_dtype
from ..registry import Construction, Kernel, kernel
from . import philox
from .draws import Draw, as_shape, full_integers, integers, normal, truncated, uniform
from .packed import MASK_32, encrypted, lanes
from .philox import Position

RESERVED = 256  # blocks that a stateful node reserves per number, as in TensorFlow


class Generator:
    """The position in its stream that one stateful node has reached."""

    __slots__ = ("position",)

    def __init__(self, start: Position) -> None:
        self.position = start

    def reserve(self, blocks: int) -> Position:
        """The position from which to draw `blocks` blocks; the next call continues after them."""
        start = self.position
        self.position = start.skipped(blocks)
        return start


def start_of(node: Construction) -> Position:
    """Where the stream of a node begins: given by its seeds or, where both are zero, by the device."""
    seed, seed2 = int(node.attrs["seed"]), int(node.attrs["seed2"])
    return philox.seeded(*(node.state.random_words(node.name) if seed == seed2 == 0 else (seed, seed2)))


def generator_of(node: Construction) -> Callable[[], Generator]:
    """The node's generator, which is made when it is first used."""
    return lambda: node.state.generator(node.name, lambda: Generator(start_of(node)))


_DISTRIBUTIONS: dict[str, Callable[[np.dtype[Any]], Draw]] = {
    "RandomUniform": uniform,
    "RandomStandardNormal": normal,
    "TruncatedNormal": truncated,
}


@kernel(*_DISTRIBUTIONS)
def random(node: Construction) -> Kernel:
    """Numbers of one distribution; each run of the node draws the following ones."""
    draw, generator = _DISTRIBUTIONS[node.op](numpy_dtype(node.output_types[0])), generator_of(node)

    def sample(shape: Array) -> Array:
        sizes = as_shape(shape)
        count = prod(sizes)
        if count == 0:
            return draw(Position(0, 0), 0).reshape(sizes)
        return draw(generator().reserve(count * RESERVED), count).reshape(sizes)

    return sample


@kernel("RandomUniformInt")
def random_uniform_int(node: Construction) -> Kernel:
    """Integers in [minval, maxval); each run of the node draws the following ones."""
    dtype, generator = numpy_dtype(node.output_types[0]), generator_of(node)

    def sample(shape: Array, low: Array, high: Array) -> Array:
        sizes = as_shape(shape)
        count = prod(sizes)
        if count == 0:
            return np.zeros(sizes, dtype)
        draw = integers(dtype, low, high)
        return draw(generator().reserve(count * RESERVED), count).reshape(sizes)

    return sample


def _shuffled(value: Array, draw: Callable[[int], Position]) -> Array:
    """The rows in random order, by Fisher and Yates' shuffle from the front; `draw` gives the place of some blocks."""
    if value.ndim == 0 or value.shape[0] <= 1:
        return value
    rows = value.shape[0]
    blocks = -(-(rows - 1) // 4)
    words = philox.stream(draw(blocks), blocks).reshape(-1)[: rows - 1]
    others = (words % np.arange(rows, 1, -1).astype(np.uint32)).tolist()
    order = list(range(rows))
    for row, other in enumerate(others):
        order[row], order[row + other] = order[row + other], order[row]
    return np.asarray(value[order])


@kernel("RandomShuffle")
def random_shuffle(node: Construction) -> Kernel:
    """The rows in random order; each run of the node draws the following words."""
    generator = generator_of(node)
    return lambda value: _shuffled(value, lambda blocks: generator().reserve(blocks))


# The key with which TensorFlow scrambles the two seeds of a stateless op into a key and a counter.
_SCRAMBLER_KEY = 0x02461E29_3EC8F720
_MASK_64 = (1 << 64) - 1


def scrambled(seed: Array) -> Position:
    """The stream position that the two numbers of `seed` give; InvalidArgumentError unless there are two."""
    if seed.shape != (2,):
        raise InvalidArgumentError(f"seed must have shape [2], not {shape_text(seed.shape)}")
    first, second = seed.tolist()
    counter = first & MASK_32, first >> 32 & MASK_32, second & MASK_32, second >> 32 & MASK_32
    a, b, c, d = encrypted(counter, _SCRAMBLER_KEY, lanes(1))
    return Position(b << 32 | a, (d << 32 | c) << 64)


_STATELESS = {
    "StatelessRandomUniform": uniform,
    "StatelessRandomNormal": normal,
    "StatelessTruncatedNormal": truncated,
    "StatelessRandomUniformFullInt": full_integers,
}


@kernel(*_STATELESS)
def stateless_random(node: Construction) -> Kernel:
    """Numbers of one distribution, determined by the seed alone."""
    draw = _STATELESS[node.op](numpy_dtype(node.output_types[0]))

    def sample(shape: Array, seed: Array) -> Array:
        sizes = as_shape(shape)
        return draw(scrambled(seed), prod(sizes)).reshape(sizes)

    return sample


@kernel("StatelessRandomUniformInt")
def stateless_random_uniform_int(node: Construction) -> Kernel:
    """Integers in [minval, maxval), determined by the seed alone."""
    dtype = numpy_dtype(node.output_types[0])

    def sample(shape: Array, seed: Array, low: Array, high: Array) -> Array:
        sizes = as_shape(shape)
        count = prod(sizes)
        if count == 0:
            return np.zeros(sizes, dtype)
        return integers(dtype, low, high)(scrambled(seed), count).reshape(sizes)

    return sample


PHILOX, AUTO = 1, 3  # numbers of algorithms; AUTO means "choose", which chooses Philox on a CPU


def place_of(key: Array, counter: Array, algorithm: Array) -> Position:
    """The stream position that a key and a counter give; InvalidArgumentError for another algorithm than Philox."""
    if algorithm.ndim != 0:
        raise InvalidArgumentError(f"algorithm must be of shape [], not {shape_text(algorithm.shape)}")
    number = int(algorithm)
    if number not in (PHILOX, AUTO):
        raise InvalidArgumentError(f"Unsupported algorithm id: {number}")
    if key.shape != (1,):
        raise InvalidArgumentError(
            f"key must have shape [1], not {shape_text(key.shape)}. (Note that batched keys are not supported yet.)"
        )
    if not (counter.ndim == 1 and counter.shape[0] >= 2):
        raise InvalidArgumentError(
            f"counter must be a vector with length at least 2; got shape: {shape_text(counter.shape)}. "
            "(Note that batched counters are not supported yet.)"
        )
    return Position(int(key[0]), int(counter[1]) << 64 | int(counter[0]))


@kernel(*(f"{op}V2" for op in _STATELESS))
def stateless_random_v2(node: Construction) -> Kernel:
    """Numbers of one distribution from a key and a counter."""
    dtype = numpy_dtype(node.output_types[0])
    draw = _STATELESS[node.op.removesuffix("V2")](dtype)

    def sample(shape: Array, key: Array, counter: Array, algorithm: Array) -> Array:
        sizes = as_shape(shape)
        count = prod(sizes)
        if count == 0:
            return np.zeros(sizes, dtype)
        return draw(place_of(key, counter, algorithm), count).reshape(sizes)

    return sample


@kernel("StatelessRandomUniformIntV2")
def stateless_random_uniform_int_v2(node: Construction) -> Kernel:
    """Integers in [minval, maxval) from a key and a counter."""
    dtype = numpy_dtype(node.output_types[0])

    def sample(shape: Array, key: Array, counter: Array, algorithm: Array, low: Array, high: Array) -> Array:
        sizes = as_shape(shape)
        count = prod(sizes)
        if count == 0:
            return np.zeros(sizes, dtype)
        return integers(dtype, low, high)(place_of(key, counter, algorithm), count).reshape(sizes)

    return sample


@kernel("StatelessShuffle")
def stateless_shuffle(node: Construction) -> Kernel:
    """The rows in the random order that a key and a counter give."""

    def shuffle(value: Array, key: Array, counter: Array, algorithm: Array) -> Array:
        place = place_of(key, counter, algorithm)
        return _shuffled(value, lambda blocks: place)

    return shuffle


def _key_counter(seed: Array) -> tuple[Array, Array]:
    place = scrambled(seed)
    numbers = np.array([place.key, place.counter & _MASK_64, place.counter >> 64], np.uint64)
    return numbers[:1], numbers[1:]


@kernel("StatelessRandomGetKeyCounter")
def get_key_counter(node: Construction) -> Kernel:
    """The key and the counter that a seed gives."""
    return _key_counter


@kernel("StatelessRandomGetKeyCounterAlg")
def get_key_counter_algorithm(node: Construction) -> Kernel:
    """The key and the counter that a seed gives, and the algorithm's number."""
    return lambda seed: (*_key_counter(seed), np.int32(PHILOX))


@kernel("StatelessRandomGetAlg")
def get_algorithm(node: Construction) -> Kernel:
    """The number of the algorithm that this device prefers."""
    return lambda: np.int32(PHILOX)
