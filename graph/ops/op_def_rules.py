"""The rules that the declaration of an op must keep: an OpDef of a user's op or of a function.

Messages begin with TensorFlow's and end with the OpDef.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from google.protobuf import text_format

from ...errors import InvalidArgumentError, UnimplementedError
from ..attrs import FIELD_OF_TYPE
from ..dtypes import DataType, dtype_name, is_ref
from ..protos import OpDef
from .attr_checks import check_type, check_value, list_items
from .registry import AttrDef

_CAMEL_CASE = re.compile(r"(?:[A-Z][A-Za-z0-9_]*>)*[A-Z][A-Za-z0-9_]*")
_TYPE_NAMES = {dtype_name(dtype) for dtype in DataType if dtype} | {
    "float16",
    "float32",
    "float64",
}


def validate_op_def(op: OpDef) -> None:
    """Raises InvalidArgumentError for the first broken rule, in this order: names, attrs, inputs, outputs.

    UnimplementedError for a default value that is neither text nor a type, if its attr lists allowed values.
    """
    try:
        if not op.name.startswith("_") and not _CAMEL_CASE.fullmatch(op.name):
            raise InvalidArgumentError(f"Invalid name: {op.name} (Did you use CamelCase?)")
        _check_names(op)
        for attr in op.attr:
            _check_attr(attr, op.name)
        attrs = {attr.name: attr for attr in op.attr}
        for direction, args in (("input", op.input_arg), ("output", op.output_arg)):
            for arg in args:
                _check_arg(arg, f"{direction} '{arg.name}'", attrs)
    except (InvalidArgumentError, UnimplementedError) as error:
        place = text_format.MessageToString(op, as_one_line=True)
        raise type(error)(f"{error.message}; in OpDef: {place}", op=op.name) from None


def _check_names(op: OpDef) -> None:
    previous: set[str] = set()
    names = [attr.name for attr in op.attr] + [arg.name for arg in (*op.input_arg, *op.output_arg)]
    for name in names:
        if name in previous:
            raise InvalidArgumentError(f"Duplicate name: {name}")
        previous.add(name)
    for attr in op.attr:
        if attr.name in _TYPE_NAMES:
            raise InvalidArgumentError(f"Attr can't have name {attr.name} that matches a data type")


def _check_attr(attr: OpDef.AttrDef, op: str) -> None:
    base = _base_type(attr)
    is_list = base != attr.type
    if attr.has_minimum:
        if attr.type != "int" and not is_list:
            raise InvalidArgumentError(f"Attr '{attr.name}' has minimum for unsupported type {attr.type}")
        if is_list and attr.minimum < 0:
            raise InvalidArgumentError(
                f"Attr '{attr.name}' with list type must have a non-negative minimum, not {attr.minimum}"
            )
    elif attr.minimum:
        raise InvalidArgumentError(
            f"Attr '{attr.name}' with has_minimum = false but minimum {attr.minimum} not equal to default of 0"
        )
    declared = AttrDef(attr.name, attr.type, None, attr.minimum if attr.has_minimum else None, None)
    if attr.HasField("allowed_values"):
        with _in_op(f"\n\t for attr '{attr.name}' in Op '{op}'"):
            check_type(attr.allowed_values, f"list({base})")
        declared = AttrDef(attr.name, attr.type, None, declared.minimum, tuple(list_items(attr.allowed_values)))
    if attr.HasField("default_value"):
        with _in_op(f"\n\t in Op '{op}'"):
            check_value(attr.default_value, declared)


@contextmanager
def _in_op(place: str) -> Iterator[None]:
    """Adds to errors, as TensorFlow does, where the value is that they speak of."""
    try:
        yield
    except (InvalidArgumentError, UnimplementedError) as error:
        raise type(error)(f"{error.message}{place}") from None


def _base_type(attr: OpDef.AttrDef) -> str:
    """The type of an attr without "list(...)"; InvalidArgumentError for a misspelt type."""
    text = attr.type
    is_list = text.startswith("list(")
    item_text = text.removeprefix("list(") if is_list else text
    base = next((name for name in FIELD_OF_TYPE if item_text.startswith(name)), None)
    if base is None:
        raise InvalidArgumentError(f"Unrecognized type '{item_text}' in attr '{attr.name}'")
    after_base = item_text.removeprefix(base)
    if is_list and not after_base.startswith(")"):
        raise InvalidArgumentError(f"'list(' is missing ')' in attr {attr.name}'s type {text}")
    extra = after_base[1:] if is_list else after_base
    if extra:
        raise InvalidArgumentError(f"Extra '{extra}' at the end of attr {attr.name}'s type {text}")
    return base


def _check_arg(arg: OpDef.ArgDef, place: str, attrs: dict[str, OpDef.AttrDef]) -> None:
    if is_ref(int(arg.type)):
        raise InvalidArgumentError(
            f"Illegal use of ref type '{dtype_name(arg.type)}'. Use 'Ref(type)' instead for {place}"
        )
    if not (arg.type or arg.type_attr or arg.type_list_attr):
        raise InvalidArgumentError(f"Missing type for {place}")
    if arg.number_attr:
        _check_count(arg, place, attrs)
        _check_one_of(place, (("type", bool(arg.type)), ("type_attr", bool(arg.type_attr))))
    else:
        sources = (
            ("type", bool(arg.type)),
            ("type_attr", bool(arg.type_attr)),
            ("type_list_attr", bool(arg.type_list_attr)),
        )
        _check_one_of(place, sources)
    for role, name, expected in (
        ("type_attr", arg.type_attr, "type"),
        ("type_list_attr", arg.type_list_attr, "list(type)"),
    ):
        if name and _attr(attrs, name, place).type != expected:
            raise InvalidArgumentError(
                f"Attr '{name}' used as {role} for {place} has type {attrs[name].type} != {expected}"
            )


def _check_one_of(place: str, sources: Iterable[tuple[str, bool]]) -> None:
    listed = list(sources)
    if sum(is_set for _, is_set in listed) != 1:
        names = ", ".join(name for name, _ in listed)
        raise InvalidArgumentError(f"Exactly one of {names} must be set for {place}")


def _check_count(arg: OpDef.ArgDef, place: str, attrs: dict[str, OpDef.AttrDef]) -> None:
    attr = _attr(attrs, arg.number_attr, place)
    used = f"Attr '{attr.name}' used as length for {place}"
    if attr.type != "int":
        raise InvalidArgumentError(f"{used} has type {attr.type} != int")
    if not attr.has_minimum:
        raise InvalidArgumentError(f"{used} must have minimum")
    if attr.minimum < 0:
        raise InvalidArgumentError(f"{used} must have minimum >= 0")
    if arg.type_list_attr:
        raise InvalidArgumentError(f"Can't have both number_attr and type_list_attr for {place}")


def _attr(attrs: dict[str, OpDef.AttrDef], name: str, place: str) -> OpDef.AttrDef:
    if name not in attrs:
        raise InvalidArgumentError(f"No attr with name '{name}' for {place}")
    return attrs[name]
