"""Messages that are values (named tuples, a few frozen dataclasses) <-> messages of the wire.

    ShareFailed(7, AbortedError("x"))   {"op": "ShareFailed", "of": [7, {"e": {"code": "ABORTED", "message": "x"}}]}

A field is what JSON has, where a list stands for a tuple, or one of these:

    {"r": name, "of": [...]}     another such value               {"b": 3}             bytes: item 3 of the tensors
    {"e": {...}}                 an error                         {"m": [[2, 0]]}      a mapping: 2 -> item 0 of these
    {"f": 1}                     a NameAttrList: item 1           {"d": 9}             an element type

Only the classes that are listed here are made, each with as many fields as it has. What they hold is what a worker of
this package has sent; DataLossError for all else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final

import numpy as np

from .....devices.kernels.communication.meeting_table import InstanceKey, Terms
from .....devices.kernels.communication.remote.messages import (
    Meet,
    MeetingSeat,
    MemberJoined,
    MemberLate,
    MemberRefused,
    Unmet,
)
from .....devices.wire import NotSent, WireMessage
from .....errors import DataLossError, InternalError, PartitaError, shown
from .....graph import NameAttrList
from .....graph.dtypes import DataType
from ....running.callee import CalledFunction
from ....running.remote import messages as step_messages
from .control import CONTROL, OfStep
from .errors import error_from_document, error_of_code, error_to_document
from .layout import HostedBy, HostLayout

_STEP = (
    *(step_messages.Caller, step_messages.CallBegin, step_messages.CallEnd, step_messages.Watch, step_messages.Probe),
    *(step_messages.ProbeAnswer, step_messages.NowStuck, step_messages.NothingGoesOn, CalledFunction),
    *(MemberJoined, MemberLate, Unmet, Meet, MeetingSeat, MemberRefused, InstanceKey, Terms),
)
_CLASSES: Final[dict[str, type]] = {kind.__name__: kind for kind in (*CONTROL, *_STEP, HostLayout, HostedBy)}


def record_to_wire(record: tuple[Any, ...]) -> WireMessage:  # Any: the fields of a message
    """The message of the wire for a value."""
    tensors: list[Any] = []
    content = [_written(field, tensors) for field in record]
    return WireMessage({"op": type(record).__name__, "of": content}, tensors)


def record_from_wire(message: WireMessage) -> Any:  # Any: one of the classes above
    """The value of a message; DataLossError for what is none.

    If a tensor of a message of a step could not be sent, its error takes the place of that message.
    """
    refused = next((item for item in message.tensors if isinstance(item, NotSent)), None)
    try:
        if refused is not None and message.header["op"] == OfStep.__name__:
            return OfStep(message.header["of"][0], error_of_code(refused.code, refused.message))
        return _made(message.header["op"], message.header["of"], message.tensors)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise DataLossError(f"a message from another process is damaged: {shown(message.header)}") from error


def _written(value: Any, tensors: list[Any]) -> Any:
    kind = type(value)
    if value is None or kind in (str, int, bool, float):
        return value
    if kind in (tuple, list):
        return [_written(item, tensors) for item in value]
    if kind is DataType:
        return {"d": int(value)}
    if isinstance(value, bytes):
        return {"b": _added(value, tensors)}
    if isinstance(value, PartitaError):
        return {"e": error_to_document(value)}
    if isinstance(value, NameAttrList):
        return {"f": _added(value.SerializeToString(deterministic=True), tensors)}
    if isinstance(value, Mapping):
        return {"m": [[key, _added(item, tensors)] for key, item in value.items()]}
    if kind.__name__ in _CLASSES:
        return {"r": kind.__name__, "of": [_written(item, tensors) for item in _fields_of(value)]}
    if isinstance(value, np.generic | np.ndarray) and value.ndim == 0:
        return _written(value.item(), tensors)
    raise InternalError(f"{shown(value)} of type {kind.__name__} is no field of a message")


def _added(item: object, tensors: list[Any]) -> int:
    tensors.append(item)
    return len(tensors) - 1


def _fields_of(value: Any) -> list[Any]:
    if is_dataclass(value):
        return [getattr(value, field.name) for field in fields(value)]
    return list(value)


def _made(name: str, content: list[Any], tensors: list[Any]) -> Any:
    return _CLASSES[name](*[_read(item, tensors) for item in content])


def _read(value: Any, tensors: list[Any]) -> Any:
    if isinstance(value, list):
        return tuple([_read(item, tensors) for item in value])
    if not isinstance(value, dict):
        return value
    if "r" in value:
        return _made(value["r"], value["of"], tensors)
    ((tag, content),) = value.items()
    match tag:
        case "d":
            return DataType(content)
        case "b":
            return bytes(tensors[content])
        case "e":
            return error_from_document(content)
        case "f":
            return NameAttrList.FromString(bytes(tensors[content]))
        case "m":
            return {key: tensors[number] for key, number in content}
    raise ValueError(tag)
