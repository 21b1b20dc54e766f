"""Attr values: message <-> Python form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

from partita.errors import InvalidArgumentError
from partita.graph import AttrValue, DataType, TensorProto
from partita.graph.attrs import attr_values_equal, decode, encode, kind_of
from tests.strategies import attr_values


@given(attr_values())
def test_decoding_and_encoding_are_inverse(case: tuple[AttrValue, str]) -> None:
    """A value of any declared type survives decode and encode, as message and as bytes."""
    value, type_string = case
    again = encode(decode(value), type_string)
    assert str(decode(again)) == str(decode(value))
    assert str(decode(value.SerializeToString())) == str(decode(value))


@pytest.mark.parametrize(
    ("value", "type_string", "kind"),
    [
        (3, "int", "int"),
        ("text", "string", "string"),
        ([True], "list(bool)", "list(bool)"),
        ([], "list(int)", "list"),
        ("float32", "type", "type"),
        (np.int64, "type", "type"),
        ((2, None), "shape", "shape"),
        (None, "shape", "shape"),
        (np.zeros(2), "tensor", "tensor"),
        ("f", "func", "func"),
    ],
)
def test_values_know_their_kind(value: object, type_string: str, kind: str) -> None:
    """An encoded value says which declared type it fits."""
    assert kind_of(encode(value, type_string)) == kind


def test_forms_of_types_and_shapes() -> None:
    """Types decode to DataType, shapes to tuples with None for what is unknown."""
    assert decode(encode("int64", "type")) is DataType.INT64
    assert decode(encode((2, None), "shape")) == (2, None)
    assert decode(encode(None, "shape")) is None
    assert decode(AttrValue()) == ()


@pytest.mark.parametrize(
    ("value", "type_string"), [("x", "int"), (None, "float"), ([1, "a"], "list(int)"), (7, "string")]
)
def test_values_that_do_not_fit_are_refused(value: object, type_string: str) -> None:
    """A Python value of another type is InvalidArgument and names value and type."""
    with pytest.raises(InvalidArgumentError, match="is no value for an attr of type"):
        encode(value, type_string)


def test_tensors_among_the_attrs_of_a_function_are_compared_by_value() -> None:
    """Another encoding of a tensor is the same attr of a function, another value, attr or name is not."""

    def function(name: str = "F", key: str = "a", **tensor: Any) -> AttrValue:
        value = AttrValue()
        value.func.name = name
        value.func.attr[key].tensor.CopyFrom(TensorProto(dtype="DT_INT32", **tensor))
        return value

    two = function(int_val=[2])
    assert attr_values_equal(two, function(tensor_content=b"\2\0\0\0"))
    assert not any(attr_values_equal(two, other) for other in (function(int_val=[3]), function(key="b", int_val=[2])))
    assert not attr_values_equal(two, function("G", int_val=[2]))
