"""Distributions over classes by weight: a fixed one, drawn from an alias table, and one that learns from true classes.

Both draw from the words of a stream what TensorFlow draws from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.dtypes import Array
from ....graph.formats.storage import read_file
from . import philox
from .words import FEW, RandomNumbers, Words, below, is_rejected, rejected

_FLOAT = np.dtype(np.float32)
_MOST = (1 << 31) - 1


class AliasTable:
    """Draws numbers 0 ... n-1 by weight from two words each (Walker 1977, Vose 1991).

    The first word is compared with the share that the number of the second word keeps of its place; if it is not below,
    the number's alias is drawn. Vose leaves open the order in which places are filled: the last ones first.
    """

    __slots__ = ("_alias", "_share", "probabilities")

    def __init__(self, weights: Array) -> None:
        """`weights` is float32 [n], n > 0."""
        with np.errstate(invalid="ignore", divide="ignore"):
            total = np.cumsum(weights, dtype=np.float32)[-1]
            self.probabilities = weights / total
            parts = weights * np.float32(len(weights)) / np.cumsum(weights, dtype=np.float64)[-1]
        self._share, self._alias = _shares_and_aliases(parts.tolist())

    def draw(self, words: Words, count: int) -> RandomNumbers:
        """`count` numbers."""
        if count <= FEW:
            return self._few(words, count)
        drawn: Array = np.empty(0, np.int64)
        bound = len(self._share)
        while len(drawn) < count:
            points, numbers = _points_and_numbers(words, bound, count - len(drawn))
            kept = points < self._share[numbers]
            drawn = np.concatenate([drawn, np.where(kept, numbers, self._alias[numbers])])
        return drawn

    def _few(self, words: Words, count: int) -> list[int]:
        """The same, one by one."""
        bound, drawn = len(self._share), list[int]()
        lowest, ahead = rejected(32, bound), iter(words.take(2 * count).tolist())
        following = chain(ahead, iter(lambda: words.take(1).item(), None))
        for _ in range(count):
            point = (next(following) & 0x7FFFFF) * 2.0**-23
            number = next(following)
            while number < lowest:
                number = next(following)
            number %= bound
            drawn.append(number if point < self._share.item(number) else self._alias.item(number))
        return drawn


def _points_and_numbers(words: Words, bound: int, count: int) -> tuple[Array, Array]:
    """Pairs of a float in [0, 1) and an integer in [0, bound): `count`, fewer before a redraw, one if it is first."""
    ahead = words.peek(2 * count)
    redrawn = np.flatnonzero(is_rejected(ahead[1::2], bound))
    ready = int(redrawn[0]) if redrawn.size else count
    if ready:
        taken = words.take(2 * ready)
        return philox.uniform_from(taken[0::2], _FLOAT), (taken[1::2] % np.uint32(bound)).astype(np.int64)
    return philox.uniform_from(words.take(1), _FLOAT), below(words, bound, 1)


def _shares_and_aliases(parts: list[float]) -> tuple[Array, Array]:
    """For weights that average one: what each number keeps of its place (float32), and which one gets the rest."""
    share, alias = list(parts), list(range(len(parts)))
    low = [i for i, part in enumerate(parts) if part < 1.0]
    high = [i for i, part in enumerate(parts) if not part < 1.0]
    while low and high:
        poor, rich = low.pop(), high.pop()
        alias[poor] = rich
        share[rich] -= 1.0 - share[poor]
        (low if share[rich] < 1.0 else high).append(rich)
    for i in low + high:  # these would be exactly one without rounding
        share[i], alias[i] = 1.0, i
    return np.array(share, np.float32), np.array(alias, np.int64)


def fixed_weights(
    unigrams: Sequence[float], vocab_file: str, distortion: float, reserved: int, shards: int, shard: int
) -> Array:
    """The weights of the classes of one shard, float32: zero for reserved ones, then those given or in the file.

    Reserved class i belongs to shard i modulo `shards`. The other classes are counted on from the number of classes
    that the shard has reserved, as TensorFlow counts them. A weight is raised to the power of `distortion`. In a file
    it is the last of the columns, which commas separate; empty lines do not count. Raises the file system's error, and
    InvalidArgumentError for a column that is not a number.
    """
    given = np.array(list(_weights_in(vocab_file)) if vocab_file else unigrams, np.float64)
    own_reserved = len(range(shard, max(reserved, 0), shards)) if shard < shards else 0
    first = (shard - own_reserved) % shards if shard < shards else len(given)
    # One rounding, as of powf: from float64.
    weights = np.power(np.asarray(given, np.float32)[first::shards].astype(np.float64), np.float32(distortion))
    return np.concatenate([np.zeros(own_reserved, np.float32), weights.astype(np.float32)])


def _weights_in(path: str) -> Iterator[float]:
    for line in read_file(path).decode(errors="replace").split("\n"):
        text = line.rstrip("\r")
        if text:
            try:
                yield float(text.rsplit(",", 1)[-1])
            except ValueError:
                raise InvalidArgumentError(f"Wrong vocabulary format at line: {text}") from None


class LearnedUnigrams:
    """Counts of true classes, each of which begins at one; a number is drawn as often as it was counted."""

    __slots__ = ("_ends", "counts")

    def __init__(self, size: int) -> None:
        self.counts = np.ones(size, np.int64)
        self._ends = np.arange(1, size + 1)

    def draw(self, words: Words, count: int) -> Array:
        """`count` numbers from one word each: int64."""
        return np.asarray(np.searchsorted(self._ends, below(words, int(self._ends[-1]), count), "right"))

    def probability(self, numbers: Array) -> Array:
        """How likely a draw is to give each of `numbers`: float32."""
        return self.counts[numbers].astype(np.float32) / np.float32(self._ends[-1])

    def learn(self, numbers: Array) -> None:
        """Counts each of `numbers`, as long as the counts add up to 31 bits."""
        room = _MOST - int(self._ends[-1])
        np.add.at(self.counts, numbers[:room], 1)
        self._ends = np.cumsum(self.counts)
