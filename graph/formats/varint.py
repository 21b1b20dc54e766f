"""Numbers of variable length, seven bits a byte, lowest first, as the table format and protobuf write them.

Flows in: unsigned numbers, or bytes and a position. Flows out: the other one. Always holds: reading back what was
written gives the number and the position behind it.
"""

from __future__ import annotations

from ...errors import DataLossError

MOST_BYTES = 10  # of a number of 64 bits
_MORE = 0x80


def varint(value: int) -> bytes:
    """The bytes of `value`, which is not negative."""
    encoded = bytearray()
    while value >= _MORE:
        encoded.append(value & 0x7F | _MORE)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def read_varint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """The number at `position` and where it ends; DataLossError when the data ends first."""
    value = 0
    for shift, byte in enumerate(data[position : position + MOST_BYTES]):
        value |= (byte & 0x7F) << 7 * shift
        if byte < _MORE:
            return value, position + shift + 1
    raise DataLossError(f"a number of variable length does not end at byte {position}; the file is damaged")
