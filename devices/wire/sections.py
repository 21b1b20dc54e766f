"""Where what stands in the bytes of a batch of messages, and the numbers of the kinds of items in it.

    preamble    magic, FORMAT, byte order, the length of each section in bytes; the five sections follow without gaps
    texts       JSON: the header of each message with its number of tensors, the resource handles, the error texts; then
                blanks, so that long blobs begin at a multiple of 16 bytes
    kinds       one byte for each item: a tensor, or one inside another (an element of a list) behind it
    numbers     int64: shapes, lengths, indices, in the order of the items
    scalars     the numpy scalars, those of one element type together: they are read and written as one array
    blobs       the elements of arrays and strings, in the order of the items

The messages [{"op": "data"}, (float32 1, float32 2, int32[2], dead)] are

    texts {"messages": [[{"op": "data"}, 4]], "handles": [], "errors": []}
    kinds 1 1 64 0    numbers 65539 2    scalars 1.0 2.0 as float32    blobs 8 bytes

where 1 and 3 are float32 and int32, and 65539 is an array of one axis (65536) of int32 (3).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from struct import Struct
from typing import Any, Final, NamedTuple

from ...errors import DataLossError, InvalidArgumentError, shown

FORMAT: Final = 1
"""the version of the format; a process reads no other"""
MAX_DEPTH: Final = 64
"""the deepest that values inside values go, such as lists of lists"""
MAX_RANK: Final = 64  # numpy has no more axes

# Kinds of items below ARRAY are numpy scalars, by the number of their element type.
NOTHING: Final = 0  # a dead tensor, or an element that is not set
ARRAY: Final = 64
STRINGS: Final = 65  # an array of strings
OBJECTS: Final = 66  # an array of objects, which follow as items
BYTES: Final = 67
HANDLE: Final = 68
ERROR: Final = 69
AGAIN: Final = 70  # an item of this batch that is the same object
FIRST_CARRIED: Final = 80  # the classes of `carried_values`, in order

# The first number of an array has its element type in the lowest byte, then these flags, then its rank.
READ_ONLY: Final = 1 << 8
STRIDED: Final = 1 << 9
RANK: Final = 1 << 16

_MAGIC = b"prta"
_ORDER = 1 if sys.byteorder == "little" else 2
_PREAMBLE = Struct("<4sHHQQQQQ")
PREAMBLE_BYTES: Final = _PREAMBLE.size
ALIGNMENT: Final = 16
"""bytes: what the elements of any type need, and no more than memory is given at"""
IN_PLACE: Final = 1 << 16
"""bytes from which on an array that is nearly the whole batch is used where it arrives"""


@dataclass(frozen=True, slots=True)
class NotSent:
    """Takes the place of a value that could not be sent: the code and the message of the error for who needs it."""

    code: str
    message: str


@dataclass(slots=True)
class WireMessage:
    """A header of JSON values, and tensors: arrays, scalars, dead tensors (None), plain bytes, `NotSent`."""

    header: dict[str, Any] = field(default_factory=dict)  # Any: what JSON can have
    tensors: list[Any] = field(default_factory=list)  # Any: tensors of any type


class Sections(NamedTuple):
    """The sections of a batch, in order."""

    texts: memoryview
    kinds: memoryview
    numbers: memoryview
    scalars: memoryview
    blobs: memoryview


def damaged(what: str) -> DataLossError:
    """The error of a message that nobody encoded like that."""
    return DataLossError(f"message from another process is damaged: {what}")


def preamble(sizes: tuple[int, int, int, int, int]) -> bytes:
    """The bytes before sections of these sizes."""
    return _PREAMBLE.pack(_MAGIC, FORMAT, _ORDER, *sizes)


def split(data: memoryview) -> Sections:
    """The sections of a batch, without a copy.

    InvalidArgumentError for what is no batch or of another format, DataLossError for one that is cut off or too long.
    """
    if len(data) < _PREAMBLE.size or data[:4] != _MAGIC:
        begin = shown(bytes(data[:8]))
        raise InvalidArgumentError(f"{begin} begins no message between processes; connect to a worker of this package")
    _, version, order, *sizes = _PREAMBLE.unpack_from(data)
    if version != FORMAT:
        raise InvalidArgumentError(
            f"message has format {version}, and this process reads format {FORMAT}; install one version everywhere"
        )
    if order != _ORDER:
        raise InvalidArgumentError("message is from a machine with another order of bytes; use machines of one order")
    if _PREAMBLE.size + sum(sizes) != len(data):
        raise damaged(f"it has {len(data)} bytes, and its sections have {_PREAMBLE.size + sum(sizes)}")
    parts, start = [], _PREAMBLE.size
    for size in sizes:
        parts.append(data[start : start + size])
        start += size
    return Sections(*parts)
