"""Blocks in snappy's raw format, which some writers of tables and the files of snapshots use.

The format (github.com/google/snappy, format_description.txt) is the length as a varint, then elements. The low two bits
of an element's first byte say whether it is a literal or a copy of earlier output, and how the other bytes are laid
out. A result of another length than announced is a DataLossError.
"""

from __future__ import annotations

from ...errors import DataLossError
from ..varint import read_varint, varint

_LITERAL = 0
_LONG_LITERAL = 60  # from this code on the length is in the next 1 to 4 bytes
_LARGEST_LITERAL = 1 << 16  # of those with their length in two bytes


def as_literals(data: bytes) -> bytes:
    """A block of `data` as literals only, which is valid and does not compress: a compressor would be slow here."""
    parts = [varint(len(data))]
    for start in range(0, len(data), _LARGEST_LITERAL):
        piece = data[start : start + _LARGEST_LITERAL]
        parts += bytes([_LONG_LITERAL + 1 << 2]), (len(piece) - 1).to_bytes(2, "little"), piece
    return b"".join(parts)


def uncompressed(block: bytes) -> bytes:
    """The decompressed block; DataLossError for a damaged one."""
    length, position = read_varint(block, 0)
    output = bytearray()
    try:
        while position < len(block) and len(output) <= length:
            if block[position] & 3 == _LITERAL:
                position = _literal(block, position, output)
            else:
                position = _copy(block, position, output)
    except IndexError:
        raise _damaged() from None
    if len(output) != length:
        raise _damaged()
    return bytes(output)


def _literal(block: bytes, position: int, output: bytearray) -> int:
    """Copies a literal to the output; returns the position behind it."""
    length = block[position] >> 2
    position += 1
    if length >= _LONG_LITERAL:
        width = length - _LONG_LITERAL + 1
        length = int.from_bytes(block[position : position + width], "little")
        position += width
    output += block[position : position + length + 1]
    return position + length + 1


def _copy(block: bytes, position: int, output: bytearray) -> int:
    """Repeats earlier output; returns the position behind the element."""
    tag = block[position]
    if tag & 3 == 1:
        length, offset, position = 4 + (tag >> 2 & 7), tag >> 5 << 8 | block[position + 1], position + 2
    else:
        width = 2 if tag & 3 == 2 else 4
        length, offset = 1 + (tag >> 2), int.from_bytes(block[position + 1 : position + 1 + width], "little")
        position += 1 + width
    if not 0 < offset <= len(output):
        raise _damaged()
    for _ in range(length):  # one by one: source and target may overlap
        output.append(output[-offset])
    return position


def _damaged() -> DataLossError:
    return DataLossError("corrupted compressed block contents")
