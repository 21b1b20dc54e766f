"""Rounds of Philox4x32 on a few blocks at once: as lanes of 64 bits in Python's integers.

    lane          1                  0
    a      ..0000'word of block 1  ..0000'word of block 0       a * 5 multiplies both words by 5

The product of a word and a multiplier of 32 bits fills its lane and no more. An operation on an integer of ten lanes
takes little longer than one on a number; the same operation on an array takes as long as one on some hundred numbers.
So lanes are several times faster than arrays for up to some hundred blocks.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from ....graph.dtypes import Array

MASK_32 = (1 << 32) - 1
# The constants of the paper: two multipliers, and the Weyl sequence that bumps the key each round.
FIRST, SECOND = 0xD2511F53, 0xCD9E8D57
WEYL = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10

BlockWords = tuple[int, int, int, int]
"""the first, second, third and fourth word of every block"""


class LaneConstants(NamedTuple):
    """Constants for so many lanes: a one in each, all lower halves, the number of each lane, the Weyl steps in each."""

    ones: int
    low: int
    numbers: int
    steps: tuple[int, int]


@cache
def lanes(count: int) -> LaneConstants:
    """The constants for `count` lanes."""
    ones = sum(1 << 64 * lane for lane in range(count))
    numbers = sum(lane << 64 * lane for lane in range(count))
    return LaneConstants(ones, ones * MASK_32, numbers, (ones * WEYL[0], ones * WEYL[1]))


def encrypted(words: BlockWords, key: int, lanes: LaneConstants) -> BlockWords:
    """The words of the blocks whose counters are `words`; the key has 64 bits.

    Upper halves of lanes are cleared where they would be multiplied, and nowhere else: there the products leave what
    belongs to the next lane, and the keys, which grow without wrapping around, their carries.
    """
    ones, low, _, (step, other_step) = lanes
    a, b, c, d = words
    k, m = (key & MASK_32) * ones, (key >> 32) * ones
    for _ in range(ROUNDS):
        first, second = a * FIRST, c * SECOND
        a = (second >> 32 ^ b ^ k) & low
        c = (first >> 32 ^ d ^ m) & low
        b, d = second, first
        k += step
        m += other_step
    return a, b & low, c, d & low


def packed(words: Array) -> int:
    """The integer whose lanes are `words` (uint64)."""
    return int.from_bytes(words.tobytes(), "little")


def doubles(words: BlockWords, count: int) -> list[float]:
    """The uniform numbers in [0, 1) of `count` blocks, two of each."""
    a, b, c, d = words
    numbers: list[float] = []
    for lane in range(0, 64 * count, 64):
        numbers += (double(a >> lane, b >> lane & MASK_32), double(c >> lane, d >> lane & MASK_32))
    return numbers


def double(first: int, second: int) -> float:
    """The uniform number in [0, 1) of two words.

    Its 52 bits are the lower 20 of one and all of the other: a whole number that a float holds exactly.
    """
    return ((first & 0xFFFFF) << 32 | second) * 2.0**-52


def unpacked(words: BlockWords, count: int) -> Array:
    """The words of `count` blocks: uint32 [count, 4]."""
    a, b, c, d = words
    if count == 1:
        return np.array([[a, b, c, d]], np.uint32)
    pairs: Array = np.empty((count, 2), np.uint64)
    pairs[:, 0] = np.frombuffer((b << 32 | a).to_bytes(8 * count, "little"), np.uint64)
    pairs[:, 1] = np.frombuffer((d << 32 | c).to_bytes(8 * count, "little"), np.uint64)
    return pairs.view(np.uint32)
