"""The debug info of a GraphDef: where in the user's program its nodes were made. A graph keeps its bytes unread.

The lazy form of a GraphDef does not declare the field, so it carries it as an unknown one, several of which are one:

    GraphDef.debug_info = 5    tag 2a, length, the bytes of a GraphDebugInfo
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from google.protobuf.unknown_fields import UnknownFieldSet

from .protos import LazyGraphDef
from .varint import varint

_FIELD = 5
_TAG = bytes((_FIELD << 3 | 2,))


def debug_info_of(graph_def: LazyGraphDef) -> bytes:
    """The debug info in a lazily parsed GraphDef; several are one, as protobuf merges messages."""
    unknown: Iterable[Any] = UnknownFieldSet(graph_def)  # type: ignore[assignment]  # its stub has no iterator
    return b"".join(field.data for field in unknown if field.field_number == _FIELD)


def debug_info_field(info: bytes) -> bytes:
    """The bytes that add debug info to a serialised GraphDef."""
    return _TAG + varint(len(info)) + info if info else b""
