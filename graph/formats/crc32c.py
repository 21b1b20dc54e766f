"""CRC32C, the checksum of checkpoints, computed with numpy.

`crc32c(b, crc32c(a)) == crc32c(a + b)`: a checksum can be continued.

The checksum is linear over GF(2), so a long buffer is folded: it is read as rows of words, and each row is shifted to
the position of the next one (multiplied by that many zero bits) and added to it, until one row with the same checksum
is left. This takes a few numpy calls per row instead of a Python loop per byte. The polynomial is Castagnoli's (RFC
3720, appendix B.4), bits reflected; masking is that of the LevelDB table format.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import numpy as np
import numpy.typing as npt

_POLYNOMIAL = 0x82F63B78
_ALL = 0xFFFFFFFF
_MASK_DELTA = 0xA282EAD8
_WORD = 4
_WIDTHS = (1 << 14, 1 << 9, 1 << 6)  # words per row: long rows need few calls, short ones leave few bytes to walk
_FEWEST_BYTES = 2 * _WIDTHS[-1] * _WORD  # that are folded; most records of files are shorter

CrcWords = npt.NDArray[np.uint32]
Buffer = bytes | bytearray | memoryview | npt.NDArray[np.uint8]


@cache
def _byte_table() -> tuple[int, ...]:
    """What each value of the lowest byte adds to the remaining checksum when it is shifted out."""
    entries = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        entries.append(value)
    return tuple(entries)


def _shifted_by_byte(value: int) -> int:
    return value >> 8 ^ _byte_table()[value & 0xFF]


@cache
def _shift_columns(words: int) -> tuple[int, ...]:
    """The checksum that each single bit becomes when this many words (a power of two) of zeros follow."""
    if words == 1:
        columns = [1 << bit for bit in range(32)]
        for _ in range(_WORD):
            columns = [_shifted_by_byte(column) for column in columns]
        return tuple(columns)
    half = _shift_columns(words // 2)
    return tuple(_combined(column, half) for column in half)


def _combined(value: int, columns: tuple[int, ...]) -> int:
    total = 0
    for bit in range(32):
        if value >> bit & 1:
            total ^= columns[bit]
    return total


@cache
def _shift_tables(words: int) -> tuple[CrcWords, CrcWords]:
    """Look-up tables of that shift for the lower and the upper half of a checksum."""
    columns = _shift_columns(words)
    return _spanned(columns[:16]), _spanned(columns[16:])


def _spanned(columns: tuple[int, ...]) -> CrcWords:
    """All sums of the columns; the bits of an index say which columns are added."""
    table = np.zeros(1 << 16, np.uint32)
    for bit, column in enumerate(columns):
        size = 1 << bit
        table[size : 2 * size] = table[:size] ^ np.uint32(column)
    return table


def _folded(words: CrcWords, start: int, width: int) -> CrcWords:
    """One row of `width` words with the same checksum as `words`, which are whole rows."""
    low, high = _shift_tables(width)
    rows = words.reshape(-1, width)
    row: CrcWords = rows[0].copy()
    row[0] ^= np.uint32(start)
    for after in rows[1:]:
        halves = row.view(np.uint16).reshape(-1, 2)
        row = np.take(low, halves[:, 0])
        row ^= high.take(halves[:, 1])
        row ^= after
    return row


def _walked(data: Iterable[int], state: int) -> int:
    """The checksum state after these bytes, processed one at a time."""
    table = _byte_table()
    for byte in data:
        state = state >> 8 ^ table[(state ^ byte) & 0xFF]
    return state


def crc32c(data: Buffer, value: int = 0) -> int:
    """The CRC32C of `data`, continuing the checksum `value` of the bytes before it."""
    state = value ^ _ALL
    if len(data) < _FEWEST_BYTES:
        return _walked(data.tolist() if isinstance(data, np.ndarray) else data, state) ^ _ALL
    remaining = data if isinstance(data, np.ndarray) else np.frombuffer(data, np.uint8)
    for width in _WIDTHS:
        size = remaining.size - remaining.size % (width * _WORD)
        if size > width * _WORD:
            row = _folded(remaining[:size].view("<u4"), state, width)
            state = crc32c(row.view(np.uint8), _ALL) ^ _ALL
            remaining = remaining[size:]
    return _walked(remaining.tolist(), state) ^ _ALL


def masked(crc: int) -> int:
    """The stored form of a checksum; checksums of data that contains checksums would be weak otherwise."""
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & _ALL


def unmasked(stored: int) -> int:
    """The checksum in its stored form `stored`."""
    rotated = (stored - _MASK_DELTA) & _ALL
    return (rotated >> 17 | rotated << 15) & _ALL
