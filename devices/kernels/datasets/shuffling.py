"""Shuffles and random numbers, in TensorFlow's order for the same seeds.

A shuffle fills a buffer from its source; each element that it gives is drawn from the buffer, and the first element of
the buffer takes its place. One that also repeats fills the buffer across epochs, and draws from the oldest epoch only.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from ....graph.dtypes import Array
from ..checks import require
from ..registry import Construction, Kernel, kernel
from .dataset import INFINITE, Dataset, Element, ElementSpec, Iterator, PullSteps, Source, carrying_dataset
from .seeds import SeedGenerator, SeedWords, drawn_seeds, generator_in, seeds_of
from .selection import repeated
from .transformation import Transformed, count_of, transforming

_ALL = -2  # the buffer size that stands for as many elements as there are


class _ShuffleIterator(Iterator):
    __slots__ = ("_buffered", "_current", "_dataset", "_epochs", "_left", "_words")

    def __init__(self, dataset: _Shuffle) -> None:
        self._dataset = dataset
        self._words = SeedWords(dataset.seeds.next())
        self._epochs: deque[deque[Element]] = deque()  # what is in the buffer, by epoch
        self._buffered = 0
        self._left = dataset.count  # epochs to begin
        self._current: Iterator | None = None

    def next(self) -> PullSteps[Element | None]:
        """As `Iterator.next`."""
        while not self._is_full() and (yield from self._fill()):
            yield None
        while self._epochs and not self._epochs[0]:
            self._epochs.popleft()
            if self._epochs:
                self._words = SeedWords(self._dataset.seeds.next())
        if not self._epochs:
            return None
        oldest = self._epochs[0]
        place = self._words.next() % len(oldest)
        element, first = oldest[place], oldest[0]
        oldest[place] = first
        oldest.popleft()
        self._buffered -= 1
        return element

    def _is_full(self) -> bool:
        return self._dataset.size != _ALL and self._buffered >= self._dataset.size

    def _fill(self) -> PullSteps[bool]:
        """Takes one element, or ends an epoch; returns whether there may be more elements."""
        if self._current is None:
            if not self._left:
                return False
            self._left -= self._left > 0
            self._current = self._dataset.source.iterator()
            self._epochs.append(deque())
        element = yield from self._current.next()
        if element is not None:
            self._epochs[-1].append(element)
            self._buffered += 1
            return True
        self._current = None
        if not self._epochs[-1] and self._left < 0:
            self._left = 0
        return True


@dataclass(frozen=True, slots=True, eq=False)
class _Shuffle(Transformed):
    size: int
    seeds: SeedGenerator
    count: int = 1

    def iterator(self) -> Iterator:
        return _ShuffleIterator(self)

    def cardinality(self) -> int:
        return repeated(self.source.cardinality(), self.count)


def _buffer_size(value: Array) -> int:
    size = count_of(value)
    require(size > 0 or size == _ALL, "buffer_size must be greater than zero or UNKNOWN_CARDINALITY")
    return size


@kernel("ShuffleDataset", "ShuffleDatasetV3")
def shuffle(node: Construction) -> Kernel:
    """The elements in a random order, in another one each time if `reshuffle_each_iteration`."""
    reshuffles = bool(node.attrs["reshuffle_each_iteration"])

    def make(form: ElementSpec, source: Dataset, size: Array, seed: Array, seed2: Array, *handle: Array) -> Dataset:
        generator = generator_in(handle[0]) if handle else None
        if generator is None:
            generator = SeedGenerator(seeds_of(node, seed, seed2), reshuffles=reshuffles)
        return _Shuffle(form, source, _buffer_size(size), generator)

    return transforming(node, make)


@kernel("ShuffleDatasetV2")
def shuffle_with_generator(node: Construction) -> Kernel:
    """The elements in a random order; the second input generates the seeds."""

    def make(form: ElementSpec, source: Dataset, size: Array, handle: Array) -> Dataset:
        generator = generator_in(handle)
        if generator is None:
            generator = SeedGenerator(drawn_seeds(node), reshuffles=True)
        return _Shuffle(form, source, _buffer_size(size), generator)

    return transforming(node, make)


@kernel("ShuffleAndRepeatDataset", "ShuffleAndRepeatDatasetV2")
def shuffle_and_repeat(node: Construction) -> Kernel:
    """Several epochs, each in a random order."""
    reshuffles = bool(node.attrs["reshuffle_each_iteration"])

    def make(
        form: ElementSpec, source: Dataset, size: Array, seed: Array, seed2: Array, count: Array, *handle: Array
    ) -> Dataset:
        times = count_of(count)
        require(times > 0 or times == -1, "count must be greater than zero or equal to -1.")
        generator = generator_in(handle[0]) if handle else None
        if generator is None:
            generator = SeedGenerator(seeds_of(node, seed, seed2), reshuffles=reshuffles)
        return _Shuffle(form, source, _buffer_size(size), generator, times)

    return transforming(node, make)


class _RandomIterator(Source):
    __slots__ = ("_words",)

    def __init__(self, words: SeedWords) -> None:
        self._words = words

    def take(self) -> Element | None:
        return (np.array(self._words.next(), np.int64),)


@dataclass(frozen=True, slots=True, eq=False)
class _Random(Dataset):
    seeds: SeedGenerator

    def iterator(self) -> Iterator:
        return _RandomIterator(SeedWords(self.seeds.next()))

    def cardinality(self) -> int:
        return INFINITE


@kernel("RandomDataset", "RandomDatasetV2", "ExperimentalRandomDataset")
def random_dataset(node: Construction) -> Kernel:
    """Random numbers without end, below 2 ** 32."""
    form, differs = ElementSpec.of(node), bool(node.attrs.get("rerandomize_each_iteration", False))

    def make(seed: Array, seed2: Array, *handle: Array) -> Array:
        generator = generator_in(handle[0]) if handle else None
        if generator is None or not differs:
            generator = SeedGenerator(seeds_of(node, seed, seed2), reshuffles=differs)
        return carrying_dataset(_Random(form, generator))

    return make
