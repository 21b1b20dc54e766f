"""A Philox stream read word by word, for ops that decide by what they have drawn how much more to draw.

words = Words(seeded(5, 7))
below(words, 10, 3)  ->  three integers in [0, 10), from three words or a few more
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....graph.dtypes import Array
from . import philox
from .philox import Position

RandomNumbers = Array | list[int]
"""integers: of a few a list, of many an array (int64)"""


class Words:
    """The words of a stream from a place on, each read once."""

    __slots__ = ("_ahead", "_blocks", "_place")

    def __init__(self, place: Position, blocks: int = 1) -> None:
        """At least so many blocks are drawn at a time."""
        self._place = place
        self._blocks = max(blocks, 1)
        self._ahead: Array = np.empty(0, np.uint32)

    def peek(self, count: int) -> Array:
        """The next `count` words, which stay unread."""
        missing = count - len(self._ahead)
        if missing > 0:
            blocks = max(-(-missing // 4), self._blocks)
            drawn = philox.stream(self._place, blocks).reshape(-1)
            self._ahead = np.concatenate([self._ahead, drawn]) if len(self._ahead) else drawn
            self._place = self._place.skipped(blocks)
        return self._ahead[:count]

    def take(self, count: int) -> Array:
        """The next `count` words: uint32."""
        words = self.peek(count)
        self._ahead = self._ahead[count:]
        return words


FEW = 64
"""up to so many numbers are drawn one by one, as Python's integers; each call of numpy costs as much as ten of them"""


def rejected(bits: int, bound: int) -> int:
    """How many of the lowest values of a word are redrawn, so that the others have each remainder equally often."""
    return (1 << bits) % bound


def is_rejected(words: Array, bound: int) -> Array:
    """Whether each word (uint32) gives no integer in [0, bound), and the next one decides."""
    return words < np.uint32(rejected(32, bound))


def below(words: Words, bound: int, count: int) -> Array:
    """`count` integers in [0, bound), as int64: remainders of words, of which a few are redrawn."""
    if count <= FEW:
        return np.array(_few_remainders(words, 1, bound, count), np.int64)
    return _remainders(words.take, rejected(32, bound), np.uint32(bound), count)


def below_wide(words: Words, bound: int, count: int) -> RandomNumbers:
    """As `below`, from pairs of words: bounds up to 2 ** 63."""
    if count <= FEW:
        return _few_remainders(words, 2, bound, count)

    def take(count: int) -> Array:
        return philox.pairs(words.take(2 * count))

    return _remainders(take, rejected(64, bound), np.uint64(bound), count)


def _few_remainders(words: Words, size: int, bound: int, count: int) -> list[int]:
    """The same from numbers of one word or of two, the first one lowest."""
    lowest, accepted = rejected(32 * size, bound), list[int]()
    while missing := count - len(accepted):
        drawn = words.take(size * missing).tolist()
        if size == 2:
            drawn = [low | high << 32 for low, high in zip(drawn[::2], drawn[1::2], strict=True)]
        accepted += [number % bound for number in drawn if number >= lowest]
    return accepted


def _remainders(take: Callable[[int], Array], lowest: int, bound: np.unsignedinteger, count: int) -> Array:
    """The remainders of the first `count` numbers that are not below `lowest`: int64."""
    accepted = take(count)
    while True:
        is_low = accepted < lowest
        num_low = int(np.count_nonzero(is_low))
        if not num_low:
            return np.asarray(accepted % bound, np.int64)
        accepted = np.concatenate([accepted[~is_low], take(num_low)])
