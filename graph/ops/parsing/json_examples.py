"""Examples in protobuf's JSON form: lists of bytes in base64, whole numbers as texts or numbers.

The serialised Example has its features in the order of the text, and every number of a list in a field of its own, as
TensorFlow writes it; every reader takes that for the packed form that protobuf writes.
"""

from __future__ import annotations

import json
import struct
from typing import Any

from google.protobuf import json_format

from ....errors import InvalidArgumentError
from ...protos import Example, Feature
from ...varint import varint

_FEATURES, _ENTRY, _KEY, _FEATURE = 0x0A, 0x0A, 0x0A, 0x12  # tags: of messages and texts
_LISTS = {"bytes_list": 0x0A, "float_list": 0x12, "int64_list": 0x1A}
_TEXT, _VARINT, _FLOAT = 0x0A, 0x08, 0x0D  # tags of one value


def example_from_json(text: bytes) -> bytes:
    """The serialised Example that the text describes; InvalidArgumentError if it is none."""
    try:
        message = json_format.Parse(text, Example())
        names = _names(json.loads(text))
    except (json_format.ParseError, UnicodeDecodeError) as error:
        shown = text.decode(errors="replace")
        raise InvalidArgumentError(f"Error while parsing JSON: {shown!r} is no Example: {error}") from None
    if not message.HasField("features"):
        return b""
    features = message.features.feature
    return _field(_FEATURES, b"".join(_field(_ENTRY, _entry(name, features[name])) for name in names))


def _names(document: Any) -> list[str]:  # what json.loads returns
    if not isinstance(document, dict):
        raise json_format.ParseError("it is no object")
    features = document.get("features") or {}
    return list(features.get("feature") or {})


def _field(tag: int, body: bytes) -> bytes:
    return bytes([tag]) + varint(len(body)) + body


def _entry(name: str, feature: Feature) -> bytes:
    """A name and its feature, as an entry of a map."""
    kind = feature.WhichOneof("kind")
    body = b"" if kind is None else _field(_LISTS[kind], b"".join(_values(feature, kind)))
    return _field(_KEY, name.encode()) + _field(_FEATURE, body)


def _values(feature: Feature, kind: str) -> list[bytes]:
    if kind == "bytes_list":
        return [_field(_TEXT, value) for value in feature.bytes_list.value]
    if kind == "float_list":
        return [bytes([_FLOAT]) + struct.pack("<f", value) for value in feature.float_list.value]
    return [bytes([_VARINT]) + varint(value % (1 << 64)) for value in feature.int64_list.value]
