"""Declarations of ops are equal whatever the order of their attrs, and so are their hashes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.graph import OpDef, numpy_to_tensor
from partita.graph.attrs import encode
from partita.graph.ops.op_def_equality import attr_def_hash, op_def_hash, same_attr_def, same_op_def
from partita.graph.ops.registry import lookup_op


def example() -> OpDef:
    op = OpDef(name="Example", summary="s", is_stateful=True, control_output=["p", "q"])
    op.input_arg.add(name="x", type_attr="T")
    op.input_arg.add(name="y", type_attr="T")
    op.attr.add(name="T", type="type", allowed_values=encode(["float32", "int32"], "list(type)"))
    op.attr.add(name="N", type="int", has_minimum=True, minimum=2)
    op.attr.add(name="v", type="tensor", default_value=encode(np.ones(2, np.float32), "tensor"))
    op.attr.add(name="s", type="string", default_value=encode("", "string"))
    return op


@given(st.permutations(range(4)), st.permutations(range(2)))
def test_the_order_of_attrs_and_control_outputs_does_not_count(attrs: list[int], outputs: list[int]) -> None:
    """Nor the encoding of a tensor."""
    other = example()
    del other.attr[:], other.control_output[:]
    other.attr.extend([example().attr[i] for i in attrs])
    other.control_output.extend([example().control_output[i] for i in outputs])
    for attr in other.attr:
        if attr.name == "v":
            attr.default_value.tensor.ClearField("tensor_content")
            attr.default_value.tensor.float_val.append(1.0)
    assert same_op_def(example(), other)
    assert op_def_hash(example()) == op_def_hash(other)


CHANGES: dict[str, Callable[[OpDef], object]] = {
    "name": lambda op: setattr(op, "name", "Other"),
    "order of inputs": lambda op: op.input_arg.reverse(),
    "flag": lambda op: setattr(op, "is_stateful", False),
    "number of attrs": lambda op: op.attr.pop(),
    "minimum": lambda op: setattr(op.attr[1], "minimum", 3),
    "allowed": lambda op: op.attr[0].allowed_values.list.type.reverse(),
    "default": lambda op: op.attr[2].default_value.CopyFrom(encode(np.zeros(2, np.float32), "tensor")),
    "empty default": lambda op: op.attr[3].ClearField("default_value"),
    "description": lambda op: setattr(op.attr[0], "description", "d"),
    "control output": lambda op: op.control_output.append("r"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_everything_else_counts(change: str) -> None:
    """A changed declaration is another one."""
    other = example()
    CHANGES[change](other)
    assert not same_op_def(example(), other)
    assert op_def_hash(example()) != op_def_hash(other)


def test_declarations_of_attrs_compare_alone() -> None:
    """Equal ones have equal hashes."""
    a, b = example().attr[2], example().attr[2]
    b.default_value.tensor.CopyFrom(numpy_to_tensor(np.ones(2, np.float32)))
    assert same_attr_def(a, b)
    assert attr_def_hash(a) == attr_def_hash(b)
    assert not same_attr_def(a, example().attr[1])
    assert attr_def_hash(a) != attr_def_hash(example().attr[1])


def test_ops_of_the_registry_differ() -> None:
    """Also those with the same signature."""
    assert not same_op_def(lookup_op("Neg").message, lookup_op("Abs").message)
    assert same_op_def(lookup_op("Neg").message, lookup_op("Neg").message)
