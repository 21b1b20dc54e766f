"""Columns of features out of serialised Examples: one array of all values of a feature, and how many each record has.

    x: [1, 2] in record 0, absent in record 1, [300] in record 2
    pieces     1a 04 0a 02 01 02 | None | 1a 04 0a 02 ac 02       serialised Features: int64_list, its values packed
    column     values [1 2 300], counts [2 0 1], kinds [INT64 NONE INT64]

Records are cut into the bytes of their features by one parse each; values are decoded once per column, since a parse
of every feature, and a Python number for every value, would cost far more than the values themselves.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from ....errors import DataLossError, InvalidArgumentError
from ...dtypes import Array, DataType
from ...protos import Feature, LazyExample, LazyFeatureList, LazySequenceExample
from ...varint import MOST_BYTES, read_varint

NONE = 0
"""the kind of a feature that is absent or empty; other kinds are the tags of BytesList, FloatList and Int64List"""
_TAGS = {DataType.STRING: 0x0A, DataType.FLOAT: 0x12, DataType.INT64: 0x1A}
_KINDS = {"bytes_list": 0x0A, "float_list": 0x12, "int64_list": 0x1A}
TYPES = {tag: dtype for dtype, tag in _TAGS.items()}
"""the type of the values of a kind"""
_VALUE = 0x0A  # the tag of the values, in the message of a list
_SHORT = 0x80  # lengths below take one byte

FeatureBytes = bytes | None
"""a serialised Feature; None where a record lacks it"""


@dataclass(frozen=True, slots=True)
class FeatureColumn:
    """All values of one feature, in order; how many belong to each record; the kind of feature of each record.

    A record with another kind than the column's has no values here.
    """

    values: Array
    counts: Array
    kinds: list[int]
    kind: int

    def wrong(self) -> int | None:
        """The first record whose feature has another type; None if there is none."""
        return next((i for i, kind in enumerate(self.kinds) if kind not in (self.kind, NONE)), None)


def features_of(record: bytes) -> Any:  # a protobuf map from str to bytes
    """The serialised features of an Example by name; InvalidArgumentError if it does not parse."""
    try:
        return LazyExample.FromString(record).features.feature
    except DecodeError:
        text = record.decode(errors="replace")
        raise InvalidArgumentError(f"Could not parse example input, value: '{text}'") from None


def sequence_of(record: bytes) -> tuple[Any, Any] | None:  # protobuf maps from str to bytes
    """By name the serialised features of a SequenceExample's context, and its lists; None if it does not parse."""
    try:
        message = LazySequenceExample.FromString(record)
    except DecodeError:
        return None
    return message.context.feature, message.feature_lists.feature_list


def steps_of(feature_list: bytes) -> list[bytes]:
    """The serialised features of a FeatureList."""
    try:
        return list(LazyFeatureList.FromString(feature_list).feature)
    except DecodeError:
        raise InvalidArgumentError("Unsupported datatype.") from None


def feature_text(piece: bytes) -> str:
    """The feature as TensorFlow's errors print it."""
    text = str(Feature.FromString(piece))
    return f"goo.gle/debugstr   \n{text}".rstrip() if text else "goo.gle/debugstr"


def column_of(pieces: Iterable[FeatureBytes], dtype: DataType) -> FeatureColumn:
    """The column of these features, as values of that type; InvalidArgumentError for a feature that does not parse."""
    if dtype == DataType.STRING:
        return _texts(pieces)
    kind = _TAGS[dtype]
    payloads: list[bytes | memoryview] = []
    kinds: list[int] = []
    for piece in pieces:
        tag, payload = (NONE, b"") if not piece else (piece[0], piece[4:]) if _is_plain(piece) else _payload(piece)
        kinds.append(tag)
        payloads.append(payload if tag == kind else b"")
    data = bytearray().join(payloads)  # its buffer, unlike that of bytes, may become the array itself
    sizes = np.fromiter(map(len, payloads), np.int64, len(payloads))
    values, counts = _floats(data, sizes) if dtype == DataType.FLOAT else _integers(data, sizes)
    return FeatureColumn(values, counts, kinds, kind)


def _is_plain(piece: bytes) -> bool:
    """Whether the piece is a list with one field, of fewer than 128 bytes: the usual case, told without a parse."""
    size = len(piece)
    return (
        4 < size < _SHORT and piece[3] == size - 4 and piece[2] == _VALUE and piece[1] == size - 2 and piece[0] in TYPES
    )


def _payload(piece: bytes) -> tuple[int, bytes | memoryview]:
    """The kind and the packed values of a list; no values of a BytesList."""
    layout = _list_layout(piece)
    if layout is not None:
        return piece[0], memoryview(piece)[layout:]
    message = _parsed(piece)
    kind = message.WhichOneof("kind")
    if kind is None:
        return NONE, b""
    if kind == "bytes_list":
        return _TAGS[DataType.STRING], b""
    message.DiscardUnknownFields()  # what is written again has the values packed in one field
    return _payload(message.SerializeToString())


def _list_layout(piece: bytes) -> int | None:
    """Where the only value, or the only packed field, of a list begins; None if there may be more of them."""
    if piece[0] not in TYPES:
        return None
    try:
        size, start = read_varint(piece, 1)
        if start + size != len(piece):
            return None
        if not size:
            return start
        inner, begin = read_varint(piece, start + 1)
    except DataLossError:
        return None
    return begin if piece[start] == _VALUE and begin + inner == len(piece) else None


def _parsed(piece: bytes) -> Feature:
    try:
        return Feature.FromString(piece)
    except DecodeError:
        raise InvalidArgumentError("Unsupported datatype.") from None


def _texts(pieces: Iterable[FeatureBytes]) -> FeatureColumn:
    """The column of the byte strings of these features."""
    kind = _TAGS[DataType.STRING]
    values: list[bytes] = []
    kinds: list[int] = []
    counts: list[int] = []
    for piece in pieces:
        if piece and piece[0] == kind and _is_plain(piece):
            tag, texts = kind, [piece[4:]]
        else:
            tag, texts = _text_list(piece) if piece else (NONE, [])
        kinds.append(tag)
        counts.append(len(texts))
        values += texts
    column = np.empty(len(values), object)
    column[:] = values
    return FeatureColumn(column, np.array(counts, np.int64), kinds, kind)


def _text_list(piece: bytes) -> tuple[int, list[bytes]]:
    message = _parsed(piece)
    kind = message.WhichOneof("kind")
    return (NONE if kind is None else _KINDS[kind]), list(message.bytes_list.value)


def _floats(data: bytearray, sizes: Array) -> tuple[Array, Array]:
    """Little-endian float32 numbers."""
    if (sizes % 4).any():
        raise InvalidArgumentError("Unsupported datatype.")
    return np.frombuffer(data, "<f4").astype(np.float32, copy=False), sizes // 4


def _integers(data: bytearray, sizes: Array) -> tuple[Array, Array]:
    """Varints: their low bits are added up byte place by byte place, for all numbers at once."""
    encoded = np.frombuffer(data, np.uint8)
    is_last = encoded < 0x80
    limits = np.cumsum(sizes)
    if not is_last[limits[sizes > 0] - 1].all():
        raise InvalidArgumentError("Unsupported datatype.")
    if is_last.all():
        return encoded.astype(np.int64), sizes
    ends = np.flatnonzero(is_last)
    starts = np.concatenate([[0], ends[:-1] + 1])
    lengths = ends - starts + 1
    values = np.zeros(len(ends), np.uint64)
    for place in range(min(int(lengths.max()), MOST_BYTES)):
        has = lengths > place
        digits = encoded[starts[has] + place] & np.uint8(0x7F)
        values[has] |= digits.astype(np.uint64) << np.uint64(7 * place)
    totals = np.concatenate([[0], np.cumsum(is_last)])
    return values.view(np.int64), totals[limits] - totals[limits - sizes]
