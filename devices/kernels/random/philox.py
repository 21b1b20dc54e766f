"""Philox4x32-10, a counter-based generator of random bits (Salmon et al., Parallel Random Numbers, 2011).

Block n of four 32-bit words is a pure function of the 64-bit key and the 128-bit counter + n, so any part of the stream
can be computed alone.

Words become numbers as TensorFlow documents it for its generators: uniform numbers fill the mantissa of [1, 2), normal
ones come in pairs from the Box-Muller transform.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ....graph.dtypes import Array
from ..half_types import BFLOAT16
from .packed import FIRST, MASK_32, ROUNDS, SECOND, WEYL, BlockWords, doubles, encrypted, lanes, packed, unpacked

_MASK_64, _MASK_128 = (1 << 64) - 1, (1 << 128) - 1
_FEW = 256  # blocks up to which lanes of Python's integers are faster than numpy's columns
_CHUNK = 4096  # blocks whose intermediate values stay in the cache
_FLOAT = np.dtype(np.float32)
# 0-d arrays: the fastest operands
_MANTISSA_32, _ONE_32 = np.array(0x7FFFFF, np.uint32), np.array(127 << 23, np.uint32)
_ONE, _WHOLE_TURN = np.array(1, np.float32), np.array(2 * np.pi)


class Position(NamedTuple):
    """A position in a Philox stream."""

    key: int
    counter: int

    def skipped(self, blocks: int) -> Position:
        """The position `blocks` blocks further on."""
        return Position(self.key, (self.counter + blocks) & _MASK_128)


def seeded(seed: int, seed2: int) -> Position:
    """The start of the stream of an op with these two seeds: one is the key, the other the counter's upper half."""
    return Position(seed & _MASK_64, (seed2 & _MASK_64) << 64)


def block(place: Position) -> BlockWords:
    """The four words at one place: what `blocks` computes for many."""
    key, counter = place
    low, high = counter & _MASK_64, counter >> 64
    return encrypted((low & MASK_32, low >> 32, high & MASK_32, high >> 32), key, lanes(1))


def blocks(start: Position, numbers: Array) -> Array:
    """The blocks at `start` plus each of `numbers` (uint64): uint32 [len(numbers), 4]."""
    count = len(numbers)
    if count > _CHUNK:
        parts = (numbers[first : first + _CHUNK] for first in range(0, count, _CHUNK))
        return np.concatenate([blocks(start, part) for part in parts])
    low, high = np.uint64(start.counter & _MASK_64), np.uint64(start.counter >> 64)
    low_words = low + numbers
    high_words = high + (low_words < low).astype(np.uint64)
    shift, mask = np.uint64(32), np.uint64(MASK_32)
    columns = [low_words & mask, low_words >> shift, high_words & mask, high_words >> shift]
    if count <= _FEW:
        a, b, c, d = map(packed, columns)
        return unpacked(encrypted((a, b, c, d), start.key, lanes(count)), count)
    key = [start.key & MASK_32, start.key >> 32]
    for _ in range(ROUNDS):
        first, second = columns[0] * np.uint64(FIRST), columns[2] * np.uint64(SECOND)
        columns = [
            (second >> shift) ^ columns[1] ^ np.uint64(key[0]),
            second & mask,
            (first >> shift) ^ columns[3] ^ np.uint64(key[1]),
            first & mask,
        ]
        key = [(word + step) & MASK_32 for word, step in zip(key, WEYL, strict=True)]
    return np.stack(columns, axis=-1).astype(np.uint32)


def _packed_stream(start: Position, count: int) -> BlockWords | None:
    """The first `count` blocks from `start` on, in lanes; None if they are too many for that."""
    key, counter = start
    first = counter & MASK_32
    if count > _FEW or first + count > MASK_32:  # the sum of a lane and its number might have a carry
        return None
    own = lanes(count)
    ones = own.ones
    low, middle, high = counter >> 32 & MASK_32, counter >> 64 & MASK_32, counter >> 96
    return encrypted((first * ones + own.numbers, low * ones, middle * ones, high * ones), key, own)


def stream(start: Position, count: int) -> Array:
    """The first `count` blocks from `start` on: uint32 [count, 4]."""
    words = _packed_stream(start, count)
    return blocks(start, np.arange(count, dtype=np.uint64)) if words is None else unpacked(words, count)


def few_doubles(start: Position, count: int) -> list[float]:
    """The first `count` float64 numbers in [0, 1) from `start` on: a few faster than `uniform_from` gives them."""
    num_blocks = -(-count // 2)
    words = _packed_stream(start, num_blocks)
    if words is None:
        return list(_uniform_64(stream(start, num_blocks)).reshape(-1)[:count].tolist())
    return doubles(words, num_blocks)[:count]


def _uniform_32(words: Array) -> Array:
    """Float32 in [0, 1): 23 random bits as the mantissa of a number in [1, 2), minus one."""
    bits: Array = np.bitwise_and(words, _MANTISSA_32)
    np.bitwise_or(bits, _ONE_32, bits)
    numbers = bits.view(_FLOAT)
    return np.subtract(numbers, _ONE, numbers)


def pairs(words: Array) -> Array:
    """Two 32-bit words each, the first one lowest, as uint64: [blocks, 2]."""
    return np.ascontiguousarray(words, np.dtype("<u4")).view(np.dtype("<u8"))


def _uniform_64(words: Array) -> Array:
    """Float64 in [0, 1): 52 random bits as the mantissa, minus one; the first word of a pair gives the upper 20.

    Both parts are exact, and so is their sum.
    """
    numbers: Array = (words[..., 0::2] & np.uint32(0xFFFFF)) * 2.0**-20
    numbers += words[..., 1::2] * 2.0**-52
    return numbers


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
    radius: Array = np.maximum(uniform[..., 0::2], scalar(1e-7))
    np.log(radius, radius)
    np.multiply(radius, scalar(-2), radius)
    np.sqrt(radius, radius)
    angle = (uniform[..., 1::2] * _WHOLE_TURN).astype(uniform.dtype, copy=False)
    result: Array = np.empty(uniform.shape, uniform.dtype)
    np.multiply(np.sin(angle), radius, result[..., 0::2])
    np.multiply(np.cos(angle), radius, result[..., 1::2])
    return result


def integers_from(words: Array, low: int, span: int, dtype: np.dtype[Any]) -> Array:
    """Integers low + word modulo span, wrapping around in `dtype`; 64-bit ones take two words each."""
    if dtype.itemsize == 8:
        wide = pairs(words) % np.uint64(span)
        return (np.uint64(low & _MASK_64) + wide).view(np.int64).astype(dtype, copy=False)
    offset = words % np.uint32(span)
    return (np.uint32(low & MASK_32) + offset).view(np.int32).astype(dtype, copy=False)


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
        is_kept = np.abs(candidates) < _TRUNCATION
        places = np.add.accumulate(is_kept, 1, np.intp) + (filled - 1)[:, None]
        is_kept &= places < size
        result.reshape(-1)[(open_groups[:, None] * size + places)[is_kept]] = candidates[is_kept]
        filled = places[:, -1] + 1
        is_open = filled < size
        open_groups, filled, block = open_groups[is_open], filled[is_open], block + 1
    return result.reshape(-1)[:count].astype(dtype, copy=False)
