"""Ops, nodes and attr values as one line of text for error messages, spelled as TensorFlow 2.21 spells them.

Examples: `Op<name=Neg; signature=x:T -> y:T; attr=T:type>` and `{{node y}} = Neg[T=DT_FLOAT](x)`. Long strings, lists
and tensors are shortened. Damaged values give a text too, not an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from google.protobuf import text_format

from ...errors import PartitaError
from ..attrs import TYPE_OF_FIELD
from ..dtypes import Array, DataType, dtype_name
from ..protos import AttrValue, NameAttrList, OpDef, TensorProto, TensorShapeProto
from ..tensor import tensor_to_numpy
from .registry import ArgDef, OpSignature

_MAX_STRING = 80
_KEPT_CHARACTERS = 10
_MAX_LIST = 30
_KEPT_ITEMS = 5
_MAX_ELEMENTS = 3
_ESCAPES = {ord(char): f"\\{letter}" for char, letter in zip("\n\r\t\"'\\", "nrt\"'\\", strict=True)}


def node_for_error(name: str) -> str:
    """The name of a node as in TensorFlow's messages: `{{node x}}`."""
    return f"{{{{node {name}}}}}"


def summarize_op(signature: OpSignature) -> str:
    """`Op<name=...; signature=inputs -> outputs; attr=name:type,default=...>`."""
    arguments = f"{arguments_text(signature.input_args)} -> {arguments_text(signature.output_args)}"
    parts = [f"name={signature.name}", f"signature={arguments}"]
    parts += [f"attr={_attr_declaration(attr)}" for attr in signature.message.attr]
    flags = (
        "is_commutative",
        "is_aggregate",
        "is_stateful",
        "allows_uninitialized_input",
        "is_distributed_communication",
    )
    parts += [f"{flag}=true" for flag in flags if getattr(signature.message, flag)]
    return f"Op<{'; '.join(parts)}>"


def arguments_text(args: Iterable[ArgDef]) -> str:
    """`x:T, y:N*T`: declared arguments with their types."""
    texts = []
    for arg in args:
        count = f"{arg.number_attr}*" if arg.number_attr else ""
        kind = dtype_name(arg.type) if arg.type else arg.type_attr
        texts.append(f"{arg.name}:{f'Ref({count}{kind})' if arg.is_ref else count + kind}")
    return ", ".join(texts)


def _attr_declaration(attr: OpDef.AttrDef) -> str:
    text = f"{attr.name}:{attr.type}"
    if attr.HasField("default_value"):
        text += f",default={summarize_attr(attr.default_value)}"
    if attr.has_minimum:
        text += f",min={attr.minimum}"
    if attr.HasField("allowed_values"):
        text += f",allowed={summarize_attr(attr.allowed_values)}"
    return text


def summarize_node(name: str, op: str, inputs: Sequence[str], attrs: Mapping[str, AttrValue], device: str = "") -> str:
    """`{{node y}} = Neg[T=DT_FLOAT, _device="/cpu:0"](x)`: attrs sorted by name, inputs as written."""
    texts = [f"{key}={summarize_attr(attrs[key])}" for key in sorted(attrs)]
    if device:
        texts.append(f'_device="{device}"')
    return f"{node_for_error(name)} = {op}[{', '.join(texts)}]({', '.join(inputs)})"


def summarize_attr(value: AttrValue) -> str:
    """The value as text: `3`, `"SAME"`, `DT_FLOAT`, `[2,?]`, `[1, 2]`, `Tensor<type: float shape: [] values: 1.5>`."""
    kind = value.WhichOneof("value")
    if kind is None:
        return "<Unknown AttrValue type>"
    if kind != "list":
        return _SUMMARIES[kind](getattr(value, kind))
    for field in TYPE_OF_FIELD:
        items = getattr(value.list, field)
        if items:
            return _summarize_list([_SUMMARIES[field](item) for item in items])
    return "[]"


def _summarize_list(texts: list[str]) -> str:
    if len(texts) >= _MAX_LIST:
        texts = [*texts[:_KEPT_ITEMS], "...", *texts[-_KEPT_ITEMS:]]
    return f"[{', '.join(texts)}]"


def escape(text: bytes) -> str:
    """The bytes as in a C string: bytes other than printable ASCII as three octal digits."""
    return "".join(_ESCAPES.get(byte) or (chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}") for byte in text)


def summarize_string(text: bytes) -> str:
    """The escaped bytes in quotes; of long ones only the first and last ten characters."""
    escaped = escape(text)
    if len(escaped) >= _MAX_STRING:
        escaped = f"{escaped[:_KEPT_CHARACTERS]}...{escaped[-_KEPT_CHARACTERS:]}"
    return f'"{escaped}"'


def _summarize_float(value: float) -> str:
    """The shortest of two lengths that gives the float32 again."""
    short = f"{value:.6g}"
    exact = np.isnan(value) or np.float32(short) == np.float32(value)
    return short if exact else f"{value:.9g}"


def _summarize_double(value: float) -> str:
    """The shortest of two lengths that gives the double again."""
    short = f"{value:.15g}"
    return short if np.isnan(value) or float(short) == value else f"{value:.17g}"


def _summarize_type(value: int) -> str:
    return f"DT_{DataType(value).name}" if value in DataType.__members__.values() else ""


def _summarize_shape(shape: TensorShapeProto) -> str:
    if shape.unknown_rank:
        return "<unknown>"
    return f"[{','.join('?' if dim.size < 0 else str(dim.size) for dim in shape.dim)}]"


def _summarize_function(value: NameAttrList) -> str:
    return f"{value.name}[{', '.join(f'{key}={summarize_attr(value.attr[key])}' for key in sorted(value.attr))}]"


def _summarize_tensor(value: TensorProto) -> str:
    try:
        array = tensor_to_numpy(value)
    except (PartitaError, ValueError, KeyError):  # the message that this text goes into is about another error
        is_shape = all(dim.size >= 0 for dim in value.tensor_shape.dim)
        kind = "Invalid TensorProto" if is_shape else "TensorProto"
        return f"<{kind}: {text_format.MessageToString(value, as_one_line=True)}>"
    shape = ",".join(map(str, array.shape))
    return f"Tensor<type: {dtype_name(value.dtype)} shape: [{shape}] values: {array_text(array, _MAX_ELEMENTS)}>"


def array_text(array: Array, count: int) -> str:
    """The first `count` elements, inner rows in brackets; "..." in a row that is cut, and at the end if more follow."""
    if array.ndim < 2:
        number = _summarize_double if array.dtype == np.float64 else _summarize_float
        texts = [_element(item, number) for item in array.reshape(-1)[:count].tolist()]
        return " ".join(texts) + ("..." if array.size > count else "")
    return _rows_text(array, count) + ("..." if array.size > count else "")


def _rows_text(array: Array, count: int) -> str:
    """The first `count` elements of an array of at least one dimension, each row, and each row of rows, in brackets."""
    if array.ndim == 1:
        return array_text(array, count)
    rows, room = [], count
    for row in array:
        if room <= 0:
            break
        rows.append(f"[{_rows_text(row, room)}]")
        room -= row.size
    return "".join(rows)


def _element(value: Any, number: Callable[[float], str]) -> str:  # an element of an array of any type
    if isinstance(value, bytes):
        return escape(value)
    if isinstance(value, (bool, int)):
        return str(int(value))
    return number(value) if isinstance(value, float) else "?"


# By field of AttrValue. Any: each function takes the type of its own field.
_SUMMARIES: dict[str, Callable[[Any], str]] = {
    "s": summarize_string,
    "i": str,
    "f": _summarize_float,
    "b": lambda value: "true" if value else "false",
    "type": _summarize_type,
    "shape": _summarize_shape,
    "tensor": _summarize_tensor,
    "func": _summarize_function,
    "placeholder": lambda value: f"${value}",
}
