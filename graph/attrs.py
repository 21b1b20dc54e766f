"""Attr values: AttrValue messages, or their bytes, to plain Python values and back.

Python forms are bytes, int, float, bool, DataType, Shape (a tuple of sizes, None for an unknown size or rank),
read-only ndarray, NameAttrList, and tuples of those for lists. Decoding needs no signature because the message says its
kind, with one ambiguity: an unset value and an empty list both decode to ().
"""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from ..errors import InvalidArgumentError
from .dtypes import DataType, parse_dtype
from .protos import AttrValue, NameAttrList, TensorProto, TensorShapeProto
from .tensor import numpy_to_tensor, shape_from_proto, shape_to_proto, tensor_to_numpy

_SMALL = 64  # serialised values up to this many bytes are decoded once and shared
_decoded: dict[bytes, Any] = {}


def _data_type(number: int) -> DataType:
    try:
        return DataType(number)
    except ValueError:
        raise InvalidArgumentError(f"AttrValue has invalid DataType enum: {number}") from None


_FROM_FIELD: dict[str, Callable[[Any], Any]] = {
    "s": bytes,
    "i": int,
    "f": float,
    "b": bool,
    "type": _data_type,
    "shape": shape_from_proto,
    "tensor": tensor_to_numpy,
    "func": lambda value: value,
    "placeholder": str,
}
FIELD_OF_TYPE = {"string": "s", "int": "i", "float": "f", "bool": "b"} | {
    name: name for name in ("type", "shape", "tensor", "func")
}
"""by type of an attr, as an OpDef writes it, the field of an AttrValue, and of its list, in TensorFlow's order"""
TYPE_OF_FIELD = {field: name for name, field in FIELD_OF_TYPE.items()}


def _decode_message(value: AttrValue) -> Any:
    kind = value.WhichOneof("value")
    if kind is None:
        return ()
    if kind != "list":
        return _FROM_FIELD[kind](getattr(value, kind))
    for descriptor, items in value.list.ListFields():
        return tuple(map(_FROM_FIELD[descriptor.name], items))
    return ()


def attr_value(data: bytes) -> AttrValue:
    """Parses a serialised AttrValue; InvalidArgumentError for damaged bytes."""
    try:
        return AttrValue.FromString(data)
    except DecodeError:
        raise InvalidArgumentError(f"the {len(data)} bytes of an attr's value are damaged") from None


def decode(value: AttrValue | bytes) -> Any:
    """The Python form of an attr value; its type depends on the value's kind.

    Raises InvalidArgumentError for damaged bytes, a damaged tensor, and an unknown element type.
    """
    if not isinstance(value, bytes):
        return _decode_message(value)
    if len(value) > _SMALL:
        return _decode_message(attr_value(value))
    if value not in _decoded:
        _decoded[value] = _decode_message(attr_value(value))
    return _decoded[value]


def kind_of(value: AttrValue) -> str:
    """The declared type that a value fits: "int", "list(type)"; "list" for an empty list, "" for an unset value."""
    kind: str | None = value.WhichOneof("value")
    if kind is None:
        return ""
    if kind != "list":
        return TYPE_OF_FIELD.get(kind, kind)
    for descriptor, _ in value.list.ListFields():
        return f"list({TYPE_OF_FIELD[descriptor.name]})"
    return "list"


def _as_tensor(value: Any) -> TensorProto:
    return value if isinstance(value, TensorProto) else numpy_to_tensor(np.asarray(value))


def _as_shape(value: Any) -> TensorShapeProto:
    if isinstance(value, TensorShapeProto):
        return value
    sizes = None if value is None else tuple(value)
    if sizes is not None and any(size is not None and size < -1 for size in sizes):
        raise ValueError("a size is at least 0, or -1 or None where it is unknown")
    return shape_to_proto(sizes)


def _as_bool(value: Any) -> bool:
    if isinstance(value, (bool, np.bool_)) or (isinstance(value, (int, np.integer)) and value in (0, 1)):
        return bool(value)
    raise TypeError("True or False expected")


def _as_function(value: Any) -> NameAttrList:
    return value if isinstance(value, NameAttrList) else NameAttrList(name=value)


def _as_bytes(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    raise TypeError("bytes or text expected")


def _as_float(value: Any) -> float:
    if isinstance(value, (str, bytes)):
        raise TypeError("a number expected")
    return float(value)


def _as_type(value: Any) -> int:
    if isinstance(value, str):
        return int(parse_dtype(value))
    if isinstance(value, (np.dtype, type)):
        return int(parse_dtype(np.dtype(value).name))
    return int(value)


_TO_FIELD: dict[str, Callable[[Any], Any]] = {
    "string": _as_bytes,
    "int": index,
    "float": _as_float,
    "bool": _as_bool,
    "type": _as_type,
    "shape": _as_shape,
    "tensor": _as_tensor,
    "func": _as_function,
}


def guessed_type(value: Any) -> str:
    """The type of an attr that the op does not declare ("_class", "_start_time"), guessed from its Python value."""
    if isinstance(value, (list, tuple)):
        return f"list({guessed_type(value[0])})" if value else "list(string)"
    for python, name in ((bool, "bool"), (DataType, "type"), (int, "int"), (float, "float"), (np.ndarray, "tensor")):
        if isinstance(value, python):
            return name
    return "func" if isinstance(value, NameAttrList) else "string"


def encode(value: Any, type_string: str) -> AttrValue:
    """The message of a Python value for an attr declared as `type_string` ("int", "list(shape)", ...).

    An AttrValue is returned unchanged. Raises InvalidArgumentError when the value does not fit the type, and for an
    unknown `type_string`.
    """
    if isinstance(value, AttrValue):
        return value
    is_list = type_string.startswith("list(")
    item_type = type_string[5:-1] if is_list else type_string
    if item_type not in FIELD_OF_TYPE:
        known = ", ".join(FIELD_OF_TYPE)
        raise InvalidArgumentError(f"{type_string!r} is no type of an attr; write one of {known}, or list(...) of one")
    field, convert = FIELD_OF_TYPE[item_type], _TO_FIELD[item_type]
    message = AttrValue()
    try:
        if is_list:
            message.list.SetInParent()
            getattr(message.list, field).extend([convert(item) for item in value])
        elif field in ("shape", "tensor", "func"):
            getattr(message, field).CopyFrom(convert(value))
        else:
            setattr(message, field, convert(value))
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"{value!r} is no value for an attr of type {type_string}: {error}") from error
    return message


def attr_values_equal(a: AttrValue, b: AttrValue) -> bool:
    """Whether two attr values are equal; tensors are compared by decoded value, so their encoding does not matter.

    That holds for tensors among the attrs of a function too, but not in lists, as in TensorFlow.
    """
    if a.HasField("func") and b.HasField("func"):
        return (
            a.func.name == b.func.name
            and a.func.attr.keys() == b.func.attr.keys()
            and all(attr_values_equal(value, b.func.attr[name]) for name, value in a.func.attr.items())
        )
    if a.HasField("tensor") and b.HasField("tensor"):
        x, y = tensor_to_numpy(a.tensor), tensor_to_numpy(b.tensor)
        if x.dtype != y.dtype or x.shape != y.shape:
            return False
        return x.tolist() == y.tolist() if x.dtype == object else x.tobytes() == y.tobytes()
    return a == b
