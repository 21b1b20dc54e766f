"""A Philox stream read word by word, for ops that decide by what they have drawn how much more to draw.

words = Words(seeded(5, 7))
below(words, 10, 3)  ->  three integers in [0, 10), from three words or a few more
"""

from __future__ import annotations

import numpy as np

from ....graph.dtypes import Array
from . import philox
from .philox import Position


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
            self._ahead = np.concatenate([self._ahead, philox.stream(self._place, blocks).reshape(-1)])
            self._place = self._place.skipped(blocks)
        return self._ahead[:count]

    def take(self, count: int) -> Array:
        """The next `count` words: uint32."""
        words = self.peek(count)
        self._ahead = self._ahead[count:]
        return words


def _rejected(bits: int, bound: int) -> int:
    """How many of the lowest values of a word are redrawn, so that the others have each remainder equally often."""
    return (1 << bits) % bound


def is_rejected(words: Array, bound: int) -> Array:
    """Whether each word (uint32) gives no integer in [0, bound), and the next one decides."""
    return words < np.uint32(_rejected(32, bound))


def below(words: Words, bound: int, count: int) -> Array:
    """`count` integers in [0, bound), as int64: remainders of words, of which a few are redrawn."""
    accepted: Array = np.empty(0, np.uint32)
    while len(accepted) < count:
        drawn = words.take(count - len(accepted))
        accepted = np.concatenate([accepted, drawn[~is_rejected(drawn, bound)]])
    return (accepted % np.uint32(bound)).astype(np.int64)


def below_wide(words: Words, bound: int, count: int) -> Array:
    """As `below`, from pairs of words: bounds up to 2 ** 63."""
    lowest, accepted = np.uint64(_rejected(64, bound)), np.empty(0, np.uint64)
    while len(accepted) < count:
        drawn = philox.pairs(words.take(2 * (count - len(accepted))))
        accepted = np.concatenate([accepted, drawn[drawn >= lowest]])
    return (accepted % np.uint64(bound)).astype(np.int64)
