"""FarmHash's 64-bit fingerprint (Pike, Google, 2014), of one string or of many at once.

The formulas below are written once, for words that are Python's integers or arrays of uint64: products of Python's
integers are cut to 64 bits where they are used, arrays are cut by themselves. Many strings are hashed together by their
lengths, since the formula depends on the length:

    b"a" b"abcdefgh" b"xyz" b"hijklmnop"     1 to 3 bytes: b"a" b"xyz"     8 to 16 bytes: the others

Python's integers take two microseconds for a short string, arrays a tenth of that.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ....graph.dtypes import Array

_MASK = (1 << 64) - 1
_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F
_CLASSES = (1, 4, 8, 17, 33, 65)  # least lengths of the strings that have one formula
_FEWEST = 100  # strings of one formula for which arrays are faster
_MOST_KEPT, _SHORT = 1 << 12, 32  # fingerprints that are kept, since words and categories return, and of what length

Word = Any  # an integer, or an array of uint64
WordAt = Callable[[int], Word]
"""the eight bytes at a place, as a little-endian number; a negative place counts from the end"""


def word_at(data: bytes, at: int) -> int:
    """Eight bytes as a little-endian number."""
    return int.from_bytes(data[at : at + 8], "little")


def rotated(value: Word, right: int) -> Word:
    """A word with its bits moved round to the right."""
    value &= _MASK
    return ((value >> right) | (value << (64 - right))) & _MASK


def mixed(value: Word) -> Word:
    """A word with its high bits mixed into the low ones."""
    return (value & _MASK) ^ ((value & _MASK) >> 47)


def _hash_pair(u: Word, v: Word, mul: Word) -> Word:
    a = mixed(((u ^ v) & _MASK) * mul)
    b = mixed(((v & _MASK) ^ a) * mul)
    return (b * mul) & _MASK


def _of_1_to_3(first: Word, middle: Word, last: Word, size: Word) -> Word:
    """From single bytes."""
    y, z = first + (middle << 8), size + (last << 2)
    return (mixed((y * _K2) ^ (z * _K0)) * _K2) & _MASK


def _of_4_to_7(first: Word, last: Word, size: Word) -> Word:
    """From four bytes of both ends."""
    return _hash_pair(size + (first << 3), last, 2 * size + _K2)


def _of_8_to_16(word: WordAt, size: Word) -> Word:
    mul = 2 * size + _K2
    a, b = word(0) + _K2, word(-8)
    return _hash_pair(rotated(b, 37) * mul + a, (rotated(a, 25) + b) * mul, mul)


def _of_17_to_64(word: WordAt, size: Word, *, is_long: bool) -> Word:
    """`is_long` for more than 32 bytes."""
    mul = 2 * size + _K2
    a, b = word(0) * (_K2 if is_long else _K1) & _MASK, word(8)
    c, d = word(-8) * mul & _MASK, word(-16) * _K2
    y = rotated(a + b, 43) + rotated(c, 30) + d
    z = _hash_pair(y, a + rotated(b + _K2, 18) + c, mul)
    if not is_long:
        return z
    e, f = word(16) * mul & _MASK, word(24)
    g, h = (y + word(-32)) * mul & _MASK, (z + word(-24)) * mul
    return _hash_pair(rotated(e + f, 43) + rotated(g, 30) + h, e + rotated(f + a, 18) + g, mul)


def _weak(data: bytes, at: int, a: int, b: int) -> tuple[int, int]:
    w, x, y, z = (word_at(data, at + 8 * i) for i in range(4))
    a += w
    b = rotated(b + a + z, 21)
    c = a
    a += x + y
    return (a + z) & _MASK, (b + rotated(a, 44) + c) & _MASK


def farm_fingerprint(data: bytes) -> int:
    """The fingerprint of one string."""
    size = len(data)
    if size > 64:
        return _of_many(data)
    if size >= 8:
        words = lambda at: word_at(data, at % size)  # noqa: E731 - a closure over the string
        fingerprint: int = _of_8_to_16(words, size) if size <= 16 else _of_17_to_64(words, size, is_long=size > 32)
        return fingerprint
    if size >= 4:
        ends = int.from_bytes(data[:4], "little"), int.from_bytes(data[-4:], "little")
        return int(_of_4_to_7(*ends, size))
    return int(_of_1_to_3(data[0], data[size >> 1], data[-1], size)) if size else _K2


def _of_many(data: bytes) -> int:
    """Of more than 64 bytes, in blocks of 64, of which the last one ends with the string."""
    size = len(data)
    x, y = 81, (81 * _K1 + 113) & _MASK
    z = mixed(y * _K2 + 113) * _K2 & _MASK
    v, w = (0, 0), (0, 0)
    x = (x * _K2 + word_at(data, 0)) & _MASK
    end = (size - 1) // 64 * 64
    for at in [*range(0, end, 64), size - 64]:
        final = at == size - 64 and at + 64 > end
        mul, many = (_K1 + ((z & 0xFF) << 1), 9) if final else (_K1, 1)
        if final:
            w = (w[0] + ((size - 1) & 63), w[1])
            v = (v[0] + w[0], v[1])
            w = (w[0] + v[0], w[1])
        x = rotated(x + y + v[0] + word_at(data, at + 8), 37) * mul
        y = rotated(y + v[1] + word_at(data, at + 48), 42) * mul
        x = (x ^ (w[1] * many)) & _MASK
        y = (y + v[0] * many + word_at(data, at + 40)) & _MASK
        z = rotated(z + w[0], 33) * mul & _MASK
        v = _weak(data, at, v[1] * mul, x + w[0])
        w = _weak(data, at + 32, z + w[1], y + word_at(data, at + 16))
        z, x = x, z
    first, second = _hash_pair(v[0], w[0], mul) + mixed(y) * _K0 + z, _hash_pair(v[1], w[1], mul) + x
    return int(_hash_pair(first, second, mul))


_kept = lru_cache(_MOST_KEPT)(farm_fingerprint)


def farm_fingerprints(values: list[bytes]) -> Array:
    """The fingerprints of many strings: uint64 [strings]."""
    if len(values) < _FEWEST:
        return np.array([(_kept if len(value) <= _SHORT else farm_fingerprint)(value) for value in values], np.uint64)
    sizes = np.fromiter(map(len, values), np.int64, len(values))
    kinds = np.searchsorted(_CLASSES, sizes, side="right")
    result = np.empty(len(values), np.uint64)
    for kind in np.unique(kinds).tolist():
        chosen = np.flatnonzero(kinds == kind)
        strings = [values[i] for i in chosen.tolist()]
        if 0 < kind < len(_CLASSES) and len(strings) >= _FEWEST:
            result[chosen] = _together(kind, strings, sizes[chosen])
        else:
            result[chosen] = np.array(list(map(farm_fingerprint, strings)), np.uint64)
    return result


def _together(kind: int, strings: list[bytes], lengths: Array) -> Array:
    """The fingerprints of strings of one formula."""
    width = _CLASSES[kind] - 1
    rows = np.array(strings, f"S{width}").view(np.uint8).reshape(len(strings), width)
    numbers, sizes = np.arange(len(strings)), lengths.astype(np.uint64)

    def number(at: Array | int, size: int) -> Array:
        """`size` bytes of each row from a place on, as a little-endian number."""
        places = np.broadcast_to(at, lengths.shape)[:, None] + np.arange(size)
        return np.asarray(rows[numbers[:, None], places].astype(np.uint64) @ _POWERS[:size])

    def word(at: int) -> Array:
        return number(at if at >= 0 else lengths + at, 8)

    if kind == 1:
        return np.asarray(_of_1_to_3(number(0, 1), number(lengths >> 1, 1), number(lengths - 1, 1), sizes))
    if kind == 2:
        return np.asarray(_of_4_to_7(number(0, 4), number(lengths - 4, 4), sizes))
    return np.asarray(_of_8_to_16(word, sizes) if kind == 3 else _of_17_to_64(word, sizes, is_long=kind == 5))


_POWERS = np.uint64(256) ** np.arange(8, dtype=np.uint64)
