"""String tensors in the data files of a checkpoint.

    length of each string (varint), masked CRC32C of the lengths (4 bytes), the strings one after the other

The checksums cover the lengths as fixed-size numbers of 4 bytes, or of 8 for strings of 4 GiB or more. The lengths have
a checksum of their own, which is checked before they are used.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from ...errors import DataLossError
from ..varint import read_varint, varint
from .crc32c import crc32c, masked, unmasked

_CHECKSUM_BYTES = 4
_LARGEST_SHORT = (1 << 32) - 1


def _lengths_checksum(lengths: Iterable[int]) -> int:
    """The checksum of the lengths."""
    fixed = bytearray()
    for length in lengths:
        fixed += length.to_bytes(4 if length <= _LARGEST_SHORT else 8, "little")
    return crc32c(fixed)


def pack_strings(strings: list[bytes]) -> tuple[bytes, int]:
    """The bytes of these strings in a data file, and their checksum."""
    lengths = [len(string) for string in strings]
    checksum = _lengths_checksum(lengths)
    stored, text = masked(checksum).to_bytes(_CHECKSUM_BYTES, "little"), b"".join(strings)
    return b"".join(map(varint, lengths)) + stored + text, crc32c(text, crc32c(stored, checksum))


def unpack_strings(data: bytes, count: int) -> tuple[list[bytes], int]:
    """The `count` strings in the bytes of a data file, and the checksum over all of it.

    Raises DataLossError if the lengths have a wrong checksum or do not add up.
    """
    lengths, position = [], 0
    for _ in range(count):
        length, position = read_varint(data, position)
        lengths.append(length)
    start = position + _CHECKSUM_BYTES
    stored, checksum = data[position:start], _lengths_checksum(lengths)
    expected = unmasked(int.from_bytes(stored, "little"))
    if expected != checksum:
        raise DataLossError(f"The length checksum does not match: expected {expected} but actual is {checksum}")
    if start + sum(lengths) != len(data):
        raise DataLossError(f"a string tensor of {len(data)} bytes holds strings of {sum(lengths)} bytes")
    return _split(data, start, lengths), crc32c(memoryview(data)[start:], crc32c(stored, checksum))


def _split(data: bytes, start: int, lengths: list[int]) -> list[bytes]:
    ends = np.cumsum([start, *lengths]).tolist()
    return [data[begin:end] for begin, end in pairwise(ends)]
