"""Handles of iterators as strings: TensorFlow's ResourceHandleProto, serialised."""

from __future__ import annotations

from google.protobuf.message import DecodeError

from ....errors import InvalidArgumentError
from ...protos import ResourceHandleProto

_HASH = 8918088204830721661  # of the class of iterators, in TensorFlow 2.21; read back by nobody here


def to_text(device: str, container: str, name: str, type_name: str) -> bytes:
    """The serialised handle of an iterator."""
    handle = ResourceHandleProto(
        device=device, container=container, name=name, hash_code=_HASH, maybe_type_name=type_name
    )
    return handle.SerializeToString(deterministic=True)


def from_text(text: bytes) -> tuple[str, str, str, str]:
    """Device, container, name and type of a serialised handle; InvalidArgumentError for other bytes."""
    try:
        handle = ResourceHandleProto.FromString(text)
    except DecodeError:
        raise InvalidArgumentError("Could not parse string_handle as a valid ResourceHandle") from None
    return handle.device, handle.container, handle.name, handle.maybe_type_name
