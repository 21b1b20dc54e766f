"""The fields of a protobuf message by path ("graph_options.infer_shapes"): all declared ones, or those that are set.

The message fields named in `opened` are walked into; others count as one field. A field that is set is either listed or
an error, so no option is ignored silently.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import Any

from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from ..errors import InvalidArgumentError


def declared_fields(message: type[Message], opened: Container[str]) -> Iterator[str]:
    """Paths of all fields of a message type; a field whose path is in `opened` is replaced by its own fields."""
    return _declared(message.DESCRIPTOR.fields, opened, "")


def _declared(
    fields: Iterable[Any],  # FieldDescriptors: each implementation of protobuf has a type of its own for them
    opened: Container[str],
    before: str,
) -> Iterator[str]:
    for field in fields:
        path = before + field.name
        if path in opened:
            yield from _declared(field.message_type.fields, opened, f"{path}.")
        else:
            yield path


def set_fields(message: Message, opened: Container[str], before: str = "") -> Iterator[tuple[str, Any]]:
    """Path and value of every field that is set, opened as in `declared_fields`.

    Raises InvalidArgumentError for a field number that an opened message does not declare: it comes from another
    version of the messages, and its meaning is unknown.
    """
    unknown = UnknownFieldSet(message)
    if len(unknown):
        where = f"{before.removesuffix('.')} of type " if before else ""
        raise InvalidArgumentError(
            f"{where}{message.DESCRIPTOR.name} has a field number {unknown[0].field_number}, which is not declared, so "
            "that nobody knows what it would do; leave it out"
        )
    for field, value in message.ListFields():
        path = before + field.name
        if path in opened:
            yield from set_fields(value, opened, f"{path}.")
        else:
            yield path, value
