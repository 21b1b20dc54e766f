"""Philox4x32-10, a counter-based generator of random bits (Salmon et al., Parallel Random Numbers, 2011).

Block n of four 32-bit words is a pure function of the 64-bit key and the 128-bit counter + n, so any part of the stream
can be computed alone.

Words become numbers as TensorFlow documents it for its generators: uniform numbers fill the mantissa of [1, 2), normal
ones come in pairs from the Box-Muller transform.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ....graph.dtypes import Array
from ..half_types import BFLOAT16

_MASK_32, _MASK_64, _MASK_128 = (1 << 32) - 1, (1 << 64) - 1, (1 << 128) - 1
# The constants of the paper: two multipliers, and the Weyl sequence that bumps the key each round.
_FIRST, _SECOND = 0xD2511F53, 0xCD9E8D57
_MULTIPLIERS = np.array([_FIRST, _SECOND], np.uint64)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10
_FEW = 12  # blocks below which Python's integers are faster than numpy's columns
_CHUNK = 4096  # blocks whose intermediate values stay in the cache


@dataclass(frozen=True, slots=True)
class Position:
    """A position in a Philox stream."""

    key: int
    counter: int

    def skipped(self, blocks: int) -> Position:
        """The position `blocks` blocks further on."""
        return Position(self.key, (self.counter + blocks) & _MASK_128)


def seeded(seed: int, seed2: int) -> Position:
    """The start of the stream of an op with these two seeds: one is the key, the other the counter's upper half."""
    return Position(seed & _MASK_64, (seed2 & _MASK_64) << 64)


def block(place: Position) -> tuple[int, int, int, int]:
    """The four words at one place: what `blocks` computes for many, with Python's integers."""
    c, key = place.counter, place.key
    a, b, c, d = c & _MASK_32, (c >> 32) & _MASK_32, (c >> 64) & _MASK_32, c >> 96
    k, m = key & _MASK_32, key >> 32
    for _ in range(_ROUNDS):
        first, second = a * _FIRST, c * _SECOND
        a, b, c, d = (second >> 32) ^ b ^ k, second & _MASK_32, (first >> 32) ^ d ^ m, first & _MASK_32
        k, m = (k + _WEYL[0]) & _MASK_32, (m + _WEYL[1]) & _MASK_32
    return a, b, c, d


def blocks(start: Position, numbers: Array) -> Array:
    """The blocks at `start` plus each of `numbers` (uint64): uint32 [len(numbers), 4]."""
    if len(numbers) < _FEW:
        words = [block(start.skipped(number)) for number in numbers.tolist()]
        return np.array(words, np.uint32).reshape(-1, 4)
    if len(numbers) > _CHUNK:
        parts = (numbers[first : first + _CHUNK] for first in range(0, len(numbers), _CHUNK))
        return np.concatenate([blocks(start, part) for part in parts])
    low, high = np.uint64(start.counter & _MASK_64), np.uint64(start.counter >> 64)
    low_words = low + numbers
    high_words = high + (low_words < low).astype(np.uint64)
    shift, mask = np.uint64(32), np.uint64(_MASK_32)
    columns = [low_words & mask, low_words >> shift, high_words & mask, high_words >> shift]
    key = [start.key & _MASK_32, start.key >> 32]
    for _ in range(_ROUNDS):
        first, second = columns[0] * _MULTIPLIERS[0], columns[2] * _MULTIPLIERS[1]
        columns = [
            (second >> shift) ^ columns[1] ^ np.uint64(key[0]),
            second & mask,
            (first >> shift) ^ columns[3] ^ np.uint64(key[1]),
            first & mask,
        ]
        key = [(word + step) & _MASK_32 for word, step in zip(key, _WEYL, strict=True)]
    return np.stack(columns, axis=-1).astype(np.uint32)


def stream(start: Position, count: int) -> Array:
    """The first `count` blocks from `start` on."""
    return blocks(start, np.arange(count, dtype=np.uint64))


def _uniform_32(words: Array) -> Array:
    """Float32 in [0, 1): 23 random bits as the mantissa of a number in [1, 2), minus one."""
    return ((words & np.uint32(0x7FFFFF)) | np.uint32(127 << 23)).view(np.float32) - np.float32(1)


def pairs(words: Array) -> Array:
    """Two 32-bit words each, the first one lowest, as uint64: [blocks, 2]."""
    wide = words.astype(np.uint64)
    return wide[..., 0::2] | (wide[..., 1::2] << np.uint64(32))


def _uniform_64(words: Array) -> Array:
    """Float64 in [0, 1): 52 random bits; the first word of a pair gives the upper 20."""
    wide = words.astype(np.uint64)
    mantissa = ((wide[..., 0::2] & np.uint64(0xFFFFF)) << np.uint64(32)) | wide[..., 1::2]
    return (mantissa | np.uint64(1023 << 52)).view(np.float64) - 1.0


def uniform_from(words: Array, dtype: np.dtype[Any]) -> Array:
    """Numbers of `dtype` in [0, 1), one per word (float64: one per two words), in order."""
    if dtype == np.float64:
        return _uniform_64(words)
    if dtype == np.float16:
        return (((words & 0x3FF) | (15 << 10)).astype(np.uint16)).view(np.float16) - np.float16(1)
    if dtype == BFLOAT16:
        bits = ((words & np.uint32(0x7F)) | np.uint32(127 << 7)) << np.uint32(16)
        return (bits.view(np.float32) - np.float32(1)).astype(BFLOAT16)
    return _uniform_32(words)


def normal_from(words: Array, dtype: np.dtype[Any]) -> Array:
    """Standard normal numbers: Box-Muller on pairs of uniform numbers; half types are rounded from float32."""
    if dtype == np.float64:
        return _box_muller(_uniform_64(words))
    return _box_muller(_uniform_32(words)).astype(dtype, copy=False)


def _box_muller(uniform: Array) -> Array:
    """Pairs (u, v) on the last axis become (sin, cos)(2 pi v) * sqrt(-2 log u); u is kept off zero.

    The angle is rounded once, from float64, as in TensorFlow: near a zero of the cosine every bit of it counts.
    """
    scalar = uniform.dtype.type
    radius = np.sqrt(scalar(-2) * np.log(np.maximum(uniform[..., 0::2], scalar(1e-7))))
    angle = (2 * np.pi * uniform[..., 1::2].astype(np.float64)).astype(uniform.dtype)
    result: Array = np.empty(uniform.shape, uniform.dtype)
    result[..., 0::2], result[..., 1::2] = np.sin(angle) * radius, np.cos(angle) * radius
    return result


def integers_from(words: Array, low: int, span: int, dtype: np.dtype[Any]) -> Array:
    """Integers low + word modulo span, wrapping around in `dtype`; 64-bit ones take two words each."""
    if dtype.itemsize == 8:
        wide = pairs(words) % np.uint64(span)
        return (np.uint64(low & _MASK_64) + wide).view(np.int64).astype(dtype, copy=False)
    offset = words % np.uint32(span)
    return (np.uint32(low & _MASK_32) + offset).view(np.int32).astype(dtype, copy=False)


def full_integers_from(words: Array, dtype: np.dtype[Any]) -> Array:
    """Integers of all values of `dtype`; 64-bit ones take two words each."""
    return pairs(words).view(dtype) if dtype.itemsize == 8 else words.view(dtype)


def words_per_number(dtype: np.dtype[Any]) -> int:
    """The number of 32-bit words that one number needs."""
    return 2 if dtype.itemsize == 8 else 1


_TRUNCATION = 2.0
_BLOCKS_PER_NUMBER = 64  # reserved for each truncated normal, although most need fewer


def truncated_normal(start: Position, count: int, dtype: np.dtype[Any]) -> Array:
    """Normal numbers redrawn until they lie within two standard deviations.

    Numbers come in groups of four (float64: two). Each group draws from a block of its own onwards, so the stream does
    not depend on the redraws of other groups.
    """
    wide = dtype == np.float64
    size = 2 if wide else 4
    groups = -(-count // size)
    result: Array = np.empty((groups, size), np.float64 if wide else np.float32)
    filled = np.zeros(groups, np.intp)
    open_groups, block = np.arange(groups), 0
    while open_groups.size:
        at = open_groups.astype(np.uint64) * np.uint64(size * _BLOCKS_PER_NUMBER) + np.uint64(block)
        candidates = normal_from(blocks(start, at), np.dtype(result.dtype))
        for column in range(size):
            value = candidates[:, column]
            take = (np.abs(value) < _TRUNCATION) & (filled[open_groups] < size)
            chosen = open_groups[take]
            result[chosen, filled[chosen]] = value[take]
            filled[chosen] += 1
        open_groups, block = open_groups[filled[open_groups] < size], block + 1
    return result.reshape(-1)[:count].astype(dtype, copy=False)
