"""Files of records, the format of TFRecord and of TensorBoard's event files.

A record is its length, a checksum of the length, its bytes, and a checksum of these; numbers are little-endian and
checksums are masked (`crc32c.py`):

    05 00 00 00 00 00 00 00 | ea b2 04 3e | h e l l o | bb 1f 1c 19
"""

from __future__ import annotations

import struct
from functools import lru_cache

from ...errors import DataLossError
from .crc32c import Buffer, crc32c, masked

_LENGTH, _CHECKSUM = struct.Struct("<Q"), struct.Struct("<I")
_HEADER_BYTES = _LENGTH.size + _CHECKSUM.size


def framed(record: bytes) -> bytes:
    """A record as a file has it."""
    length = _LENGTH.pack(len(record))
    return b"".join((length, _checksum(length), record, _checksum(record)))


def _checksum(data: Buffer) -> bytes:
    return _CHECKSUM.pack(masked(crc32c(data)))


@lru_cache(maxsize=1024)
def _checksum_of_length(length: bytes) -> bytes:
    """As `_checksum`: the records of a file mostly have few lengths."""
    return _checksum(length)


def record_at(content: memoryview, start: int) -> tuple[bytes, int] | None:
    """The record whose header begins at `start`, and where the next one begins; None at the end of the file.

    A header that is cut off is the end too, as in TensorFlow. DataLossError for a damaged record, and for one that is
    cut off.
    """
    body = start + _HEADER_BYTES
    if len(content) < body:
        return None
    if content[start + _LENGTH.size : body] != _checksum_of_length(bytes(content[start : start + _LENGTH.size])):
        raise DataLossError(f"corrupted record at {start} (Is this even a TFRecord file?)")
    end = body + int(_LENGTH.unpack_from(content, start)[0])
    after = end + _CHECKSUM.size
    if len(content) < after:
        raise DataLossError(f"truncated record at {start}' failed with Read less bytes than requested")
    if content[end:after] != _checksum(content[body:end]):
        raise DataLossError(f"corrupted record at {body}")
    return bytes(content[body:end]), after
