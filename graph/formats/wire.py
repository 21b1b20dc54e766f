"""Tells whether a protobuf file that does not parse is truncated or damaged.

Only the outermost fields are read: a tag, and then a varint, eight or four bytes, or a length and that many bytes.

    08 2a | 12 03 61 62 63    field 1: 42 | field 2: "abc"        whole
    08 2a | 12 03 61          field 2 has three bytes, one is there: truncated
"""

from __future__ import annotations

from ...errors import DataLossError
from ..varint import MOST_BYTES, read_varint

_VARINT, _EIGHT_BYTES, _LENGTH, _FOUR_BYTES = 0, 1, 2, 5  # wire types, the lowest three bits of a tag
_SIZES = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}


def is_cut_short(data: bytes) -> bool:
    """Whether the bytes of a message end inside a field; False for a complete message and for other damage."""
    position = 0
    try:
        while position < len(data):
            tag, position = read_varint(data, position)
            wire_type = tag & 7
            if tag < 1 << 3 or wire_type not in (_VARINT, _LENGTH, *_SIZES):
                return False
            size = _SIZES.get(wire_type, 0)
            if wire_type in (_VARINT, _LENGTH):
                number, position = read_varint(data, position)
                size = number if wire_type == _LENGTH else 0
            position += size
    except DataLossError:
        return len(data) - position < MOST_BYTES
    return position > len(data)
