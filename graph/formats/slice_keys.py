"""The keys of a checkpoint: names of tensors, and keys of slices.

The key of a slice is a zero byte, the name, and the slice in an encoding of numbers that keeps their order.
"""

from __future__ import annotations

import re

from ..ops.files.tensor_slices import TensorSlice

SLICE_MARK = b"\0"  # first byte of the keys of slices; no name begins with it
_END_OF_NAME = b"\0\1"
_SPECIAL = re.compile(rb"[\x00\xff]")
_ESCAPES = {b"\0": b"\0\xff", b"\xff": b"\xff\0"}


def encode_name(name: str) -> bytes:
    """A tensor's name as its key; bytes that are no UTF-8 survive decoding and encoding."""
    return name.encode("utf-8", "surrogateescape")


def decode_name(key: bytes) -> str:
    """The name of a tensor whose key is `key`."""
    return key.decode("utf-8", "surrogateescape")


def slice_key(name: str, part: TensorSlice) -> bytes:
    """The key of a slice in a checkpoint: a zero, the name, the rank, then start and length per dimension.

    Keys sort like (name, rank, extents): the name ends in two bytes that no name contains, unsigned numbers begin with
    their length in bytes, signed ones with as many lead bits as they have bytes (a whole dimension is 0 and -1).
    """
    escaped = _SPECIAL.sub(lambda match: _ESCAPES[match[0]], encode_name(name))
    rank = len(part.extents)
    numbers = b"".join(_signed(start) + _signed(length) for start, length in (e or (0, -1) for e in part.extents))
    return SLICE_MARK + escaped + _END_OF_NAME + _unsigned(rank) + numbers


def sliced_name(key: bytes) -> str:
    """The name of the tensor in the key of a slice."""
    escaped = key.removeprefix(SLICE_MARK).partition(_END_OF_NAME)[0]
    return decode_name(re.sub(rb"(\x00)\xff|(\xff)\x00", lambda match: match[0][:1], escaped))


def _unsigned(value: int) -> bytes:
    size = (value.bit_length() + 7) // 8
    return bytes([size]) + value.to_bytes(size, "big")


def _signed(value: int) -> bytes:
    """Seven bits per byte, minus one for the sign: lead bits count the bytes, inverted for negative numbers."""
    magnitude = value if value >= 0 else ~value
    size = magnitude.bit_length() // 7 + 1
    lead = ((1 << size) - 1) << (8 * size - size)
    return ((value & ((1 << 8 * size) - 1)) ^ lead).to_bytes(size, "big")
