"""Varints: unsigned numbers, seven bits per byte, lowest first, as the table format and protobuf use them."""

from __future__ import annotations

from ..errors import DataLossError

MOST_BYTES = 10  # of a 64-bit number
_MORE = 0x80


def varint(value: int) -> bytes:
    """The encoding of `value`, which must not be negative."""
    encoded = bytearray()
    while value >= _MORE:
        encoded.append(value & 0x7F | _MORE)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def read_varint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """The number at `position` and the position behind it; DataLossError if the data ends too early."""
    value = 0
    for shift, byte in enumerate(data[position : position + MOST_BYTES]):
        value |= (byte & 0x7F) << 7 * shift
        if byte < _MORE:
            return value, position + shift + 1
    raise DataLossError(f"a number of variable length does not end at byte {position}; the file is damaged")
