"""CRC32C, the checksum of checkpoints, over buffers of any length.

Flows in: bytes. Flows out: the checksum as an unsigned 32-bit number. Always holds: a checksum can be continued, so
`crc32c(b, crc32c(a)) == crc32c(a + b)`.

The checksum is linear over GF(2), so a long buffer is folded instead of walked: it is read as rows of words, and a row
is taken to the place of the next one (multiplied by so many zero bits) and added to it, until one row with the same
checksum is left. That is a few numpy calls per row instead of a Python loop per byte. The polynomial is Castagnoli's
(RFC 3720, appendix B.4), bits reflected; the masking is that of the LevelDB table format.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

_POLYNOMIAL = 0x82F63B78
_ALL = 0xFFFFFFFF
_MASK_DELTA = 0xA282EAD8
_WORD = 4
_WIDTHS = (1 << 14, 1 << 9, 1 << 6)  # words of a row: long rows cost few calls, short ones leave little to walk

Words = npt.NDArray[np.uint32]
Buffer = bytes | bytearray | memoryview | npt.NDArray[np.uint8]


@cache
def _byte_table() -> tuple[int, ...]:
    """What each value of the lowest byte of a checksum adds to the rest when it is shifted out."""
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
    """What each bit of a checksum becomes when so many words (a power of two) of zeros follow."""
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
def _shift_tables(words: int) -> tuple[Words, Words]:
    """The shift by so many words, of every value of the lower and of the upper half of a checksum."""
    columns = _shift_columns(words)
    return _spanned(columns[:16]), _spanned(columns[16:])


def _spanned(columns: tuple[int, ...]) -> Words:
    """All sums of the columns, under the number whose bits say which are taken."""
    table = np.zeros(1 << 16, np.uint32)
    for bit, column in enumerate(columns):
        size = 1 << bit
        table[size : 2 * size] = table[:size] ^ np.uint32(column)
    return table


def _folded(words: Words, start: int, width: int) -> Words:
    """The one row of `width` words that has the checksum of all `words`, which are a number of whole rows."""
    low, high = _shift_tables(width)
    rows = words.reshape(-1, width)
    row: Words = rows[0].copy()
    row[0] ^= np.uint32(start)
    for after in rows[1:]:
        halves = row.view(np.uint16).reshape(-1, 2)
        row = np.take(low, halves[:, 0])
        row ^= high.take(halves[:, 1])
        row ^= after
    return row


def _walked(data: npt.NDArray[np.uint8], state: int) -> int:
    """The state of the checksum after these bytes, one at a time."""
    table = _byte_table()
    for byte in data.tolist():
        state = state >> 8 ^ table[(state ^ byte) & 0xFF]
    return state


def crc32c(data: Buffer, value: int = 0) -> int:
    """The CRC32C of `data`, continuing `value`, that of what comes before it."""
    rest = data if isinstance(data, np.ndarray) else np.frombuffer(data, np.uint8)
    state = value ^ _ALL
    for width in _WIDTHS:
        size = rest.size - rest.size % (width * _WORD)
        if size > width * _WORD:
            row = _folded(rest[:size].view("<u4"), state, width)
            state = crc32c(row.view(np.uint8), _ALL) ^ _ALL
            rest = rest[size:]
    return _walked(rest, state) ^ _ALL


def masked(crc: int) -> int:
    """How a checksum is stored: data that holds checksums would else have a checksum that shows little."""
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & _ALL


def unmasked(stored: int) -> int:
    """The checksum that is stored as `stored`."""
    rotated = (stored - _MASK_DELTA) & _ALL
    return (rotated >> 17 | rotated << 15) & _ALL
