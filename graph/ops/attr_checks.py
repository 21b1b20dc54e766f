"""Checks an attr value against its declaration: kind, minimum, allowed values.

Numbers are not converted: an int is not accepted as a float or a bool. Reference types are refused. An unset value is
accepted as an empty list. Messages begin with TensorFlow's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...errors import InvalidArgumentError, UnimplementedError
from ..attrs import FIELD_OF_TYPE, TYPE_OF_FIELD
from ..dtypes import DataType, dtype_name, is_ref
from ..protos import AttrValue
from .registry import AttrDef

_RESTRICTED = frozenset({"string", "type", "list(string)", "list(type)"})
_KNOWN_TYPES = frozenset(int(dtype) for dtype in DataType)


def check_type(value: AttrValue, expected: str) -> None:
    """Raises InvalidArgumentError unless `value` has the type `expected`, written as in an OpDef: "list(type)"."""
    if value.HasField("placeholder"):
        raise InvalidArgumentError("AttrValue had value with unexpected type 'placeholder'")
    kinds = list(_kinds(value))
    for kind in kinds:
        if kind != expected:
            raise InvalidArgumentError(f"AttrValue had value with type '{kind}' when '{expected}' expected")
    if not kinds and not expected.startswith("list("):
        raise InvalidArgumentError(f"AttrValue missing value with expected type '{expected}'")
    if expected == "type":
        _check_data_type(value.type)
    elif expected == "list(type)":
        for item in value.list.type:
            _check_data_type(item, verb="contains")


def _kinds(value: AttrValue) -> Iterable[str]:
    kind = value.WhichOneof("value")
    if kind == "list":
        return (f"list({name})" for field, name in TYPE_OF_FIELD.items() if getattr(value.list, field))
    return () if kind is None else (TYPE_OF_FIELD.get(kind, kind),)


def _check_data_type(value: int, verb: str = "has") -> None:
    if value not in _KNOWN_TYPES:
        raise InvalidArgumentError(f"AttrValue has invalid DataType enum: {value}")
    if is_ref(value):
        raise InvalidArgumentError(f"AttrValue must not have reference type value of {dtype_name(value)}")
    if value == DataType.INVALID:
        raise InvalidArgumentError(f"AttrValue {verb} invalid DataType")


def check_value(value: AttrValue, declared: AttrDef) -> None:
    """Raises InvalidArgumentError unless `value` has the declared type, reaches the minimum, and is allowed.

    UnimplementedError, as in TensorFlow, for a list of allowed values that are neither texts nor types.
    """
    try:
        check_type(value, declared.type)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{error.message}\n\t for attr '{declared.name}'") from None
    items = list_items(value) if declared.type.startswith("list(") else None
    if declared.minimum is not None:
        _check_minimum(value, items, declared)
    if declared.allowed is not None:
        if declared.type not in _RESTRICTED:
            raise UnimplementedError(f"Support for allowed_values not implemented for type {declared.type}")
        _check_allowed([getattr(value, FIELD_OF_TYPE[declared.type])] if items is None else items, declared)


def list_items(value: AttrValue) -> Sequence[Any]:
    """The items of a list value of any kind; () for an empty one."""
    return next((getattr(value.list, field) for field in TYPE_OF_FIELD if getattr(value.list, field)), ())


def _check_minimum(value: AttrValue, items: Sequence[Any] | None, declared: AttrDef) -> None:
    minimum = declared.minimum or 0
    actual, what = (value.i, "Value") if items is None else (len(items), "Length")
    if actual < minimum:
        raise InvalidArgumentError(f"{what} for attr '{declared.name}' of {actual} must be at least minimum {minimum}")


def _check_allowed(items: Iterable[Any], declared: AttrDef) -> None:
    for item in items:
        if item not in (declared.allowed or ()):
            actual, allowed = _allowed_text(item), ", ".join(map(_allowed_text, declared.allowed or ()))
            raise InvalidArgumentError(
                f"Value for attr '{declared.name}' of {actual} is not in the list of allowed values: {allowed}"
            )


def _allowed_text(value: int | bytes) -> str:
    return f'"{value.decode(errors="backslashreplace")}"' if isinstance(value, bytes) else dtype_name(value)
