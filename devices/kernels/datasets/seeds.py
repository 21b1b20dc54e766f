"""Generators of seeds, by which shuffles and random datasets differ from epoch to epoch as in TensorFlow.

A generator is a stream of 32-bit words (Philox) that begins at two seeds; every epoch takes the next two words as its
seeds. Without reshuffling all epochs have the same seeds.
"""

from __future__ import annotations

from ....graph.dtypes import Array
from ..carried import carrying
from ..random import philox
from ..registry import Construction, Kernel, kernel
from .transformation import count_of, flag_of

Seeds = tuple[int, int]
_WORDS = 256  # random words drawn at once


class SeedWords:
    """The 32-bit words of a Philox stream, one by one."""

    __slots__ = ("_place", "_words")

    def __init__(self, seeds: Seeds) -> None:
        self._place = philox.seeded(*seeds)
        self._words: list[int] = []

    def next(self) -> int:
        """The next word."""
        if not self._words:
            blocks = philox.stream(self._place, _WORDS // 4)
            self._place = self._place.skipped(len(blocks))
            self._words = blocks.reshape(-1)[::-1].tolist()
        return self._words.pop()


class SeedGenerator:
    """Gives the seeds of each epoch."""

    __slots__ = ("_seeds", "_words")

    def __init__(self, seeds: Seeds, *, reshuffles: bool) -> None:
        self._seeds = seeds
        self._words = SeedWords(seeds) if reshuffles else None

    def next(self) -> Seeds:
        """The seeds of the next epoch."""
        return self._seeds if self._words is None else (self._words.next(), self._words.next())


def seeds_of(node: Construction, seed: Array, seed2: Array) -> Seeds:
    """The seeds that two inputs give; if both are zero, others each time, which the device draws for the node."""
    seeds = count_of(seed), count_of(seed2)
    return seeds if any(seeds) else drawn_seeds(node)


def drawn_seeds(node: Construction) -> Seeds:
    """The next seeds that the device draws for a node without seeds."""
    words: SeedWords = node.state.generator(node.name, lambda: SeedWords(node.state.random_words(node.name)))
    return words.next(), words.next()


def generator_in(handle: Array) -> SeedGenerator | None:
    """The generator that a resource tensor carries, None for a dummy."""
    generator = handle.item()
    return generator if isinstance(generator, SeedGenerator) else None


@kernel("AnonymousSeedGenerator")
def anonymous_seed_generator(node: Construction) -> Kernel:
    """A generator of seeds, and what deletes it."""

    def make(seed: Array, seed2: Array, reshuffle: Array) -> tuple[Array, Array]:
        value = carrying(SeedGenerator(seeds_of(node, seed, seed2), reshuffles=flag_of(reshuffle)))
        return value, value

    return make


@kernel("AnonymousRandomSeedGenerator")
def anonymous_random_seed_generator(node: Construction) -> Kernel:
    """A generator of seeds that differ, and what deletes it."""

    def make(seed: Array, seed2: Array) -> tuple[Array, Array]:
        value = carrying(SeedGenerator(seeds_of(node, seed, seed2), reshuffles=True))
        return value, value

    return make


class _Dummy:
    """Stands for a resource that each dataset makes for itself."""


@kernel("DummySeedGenerator", "DummyMemoryCache")
def dummy(node: Construction) -> Kernel:
    """A handle of nothing: the dataset that gets it has a generator, or a cache, of its own."""
    value = carrying(_Dummy())
    return lambda: value


@kernel("DeleteSeedGenerator", "DeleteRandomSeedGenerator", "DeleteMemoryCache")
def delete(node: Construction) -> Kernel:
    """Nothing: what the tensors carry goes with the last of them."""
    return lambda handle, deleter: None
