"""Which differences between two definitions of a function matter; TensorFlow 2.21's FunctionDefsEqual agrees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from partita.graph.attrs import encode
from partita.graph.dtypes import DataType
from partita.graph.library.equality import same_function
from partita.graph.library.function_library import FunctionLibrary
from partita.graph.protos import FunctionDef
from partita.graph.tensor import numpy_to_tensor
from tests.function_defs import library_of


def example() -> FunctionDef:
    """z = x * y once k and q have run, then a call of G."""
    f = FunctionDef()
    f.signature.name = "F"
    f.signature.input_arg.add(name="x", type="DT_FLOAT")
    f.signature.input_arg.add(name="y", type="DT_FLOAT")
    f.signature.output_arg.add(name="z", type="DT_FLOAT")
    f.signature.control_output.extend(["c1", "c2"])
    f.signature.attr.add(name="T", type="type")
    f.signature.attr.add(name="U", type="int")
    k = f.node_def.add(name="k", op="Const")
    k.attr["dtype"].CopyFrom(encode(DataType.FLOAT, "type"))
    k.attr["value"].tensor.CopyFrom(numpy_to_tensor(np.array([1, 1], np.float32)))
    m = f.node_def.add(name="m", op="Mul", input=["x", "y", "^k", "^q"])
    m.attr["T"].CopyFrom(encode(DataType.FLOAT, "type"))
    m.attr["_internal"].i = 3
    f.node_def.add(name="q", op="NoOp")
    call = f.node_def.add(name="call", op="PartitionedCall", device="/cpu:0")
    call.attr["f"].func.name = "G"
    call.attr["f"].func.attr["A"].i = 1
    f.ret["z"] = "m:z:0"
    f.control_ret["c1"], f.control_ret["c2"] = "q", "k"
    f.attr["_x"].i = 1
    f.resource_arg_unique_id[0] = 5
    f.arg_attr[0].attr["_s"].i = 4
    return f


Change = Callable[[FunctionDef], Any]


def reorder(field: Any) -> None:
    items = list(field)
    del field[:]
    field.extend(reversed(items))


def inputs(f: FunctionDef, *names: str) -> None:
    f.node_def[1].input[:] = names


def value(f: FunctionDef, *numbers: float) -> None:
    tensor = f.node_def[0].attr["value"].tensor
    tensor.tensor_content = b""
    tensor.float_val.extend(numbers)


NO_CHANGE: dict[str, Change] = {
    "nodes in another order": lambda f: reorder(f.node_def),
    "control inputs in another order": lambda f: inputs(f, "x", "y", "^q", "^k"),
    "x:0 for x": lambda f: inputs(f, "x:0", "y", "^k", "^q"),
    "an internal attr of a node": lambda f: f.node_def[1].attr["_internal"].Clear(),
    "a colocation": lambda f: f.node_def[1].attr["_class"].list.s.append(b"loc:@k"),
    "a tensor written another way": lambda f: value(f, 1),
    "control outputs in another order": lambda f: reorder(f.signature.control_output),
    "declared attrs in another order": lambda f: reorder(f.signature.attr),
    "an attr of the function without value": lambda f: f.attr["w"].SetInParent(),
    "numbers of resources": lambda f: f.resource_arg_unique_id.update({0: 6}),
    "attrs of arguments": lambda f: f.arg_attr[0].attr["_s"].Clear(),
    "debug information": lambda f: f.node_def[2].experimental_debug_info.original_node_names.append("a"),
}
CHANGES: dict[str, Change] = {
    "data inputs in another order": lambda f: inputs(f, "y", "x", "^k", "^q"),
    "a control input twice": lambda f: inputs(f, "x", "y", "^k", "^q", "^q"),
    "a control input instead of another": lambda f: inputs(f, "x", "y", "^q", "^q"),
    "an attr more, with its default": lambda f: setattr(f.node_def[1].attr["grad_x"], "b", False),
    "the value of an attr": lambda f: setattr(f.node_def[1].attr["T"], "type", 2),
    "the value of a tensor": lambda f: value(f, 2),
    "an attr given to a function": lambda f: setattr(f.node_def[3].attr["f"].func.attr["A"], "i", 2),
    "a device": lambda f: setattr(f.node_def[1], "device", "/cpu:0"),
    "the name of a node": lambda f: setattr(f.node_def[2], "name", "q2"),
    "a node less": lambda f: f.node_def.pop(),
    "a node more": lambda f: f.node_def.add(name="e", op="NoOp"),
    "a result": lambda f: f.ret.update({"z": "k:output:0"}),
    "a control result": lambda f: f.control_ret.update({"c1": "k"}),
    "an attr of the function": lambda f: setattr(f.attr["_x"], "i", 2),
    "the order of arguments": lambda f: reorder(f.signature.input_arg),
    "a default": lambda f: setattr(f.signature.attr[1].default_value, "i", 3),
    "a description": lambda f: setattr(f.signature, "description", "d"),
    "state": lambda f: setattr(f.signature, "is_stateful", True),
}


@pytest.mark.parametrize("change", NO_CHANGE.values(), ids=NO_CHANGE)
def test_what_has_no_meaning_does_not_count(change: Change) -> None:
    """A library accepts the second definition as equal, and keeps the first."""
    f, g = example(), example()
    change(g)
    assert g != f
    assert same_function(f, g)
    assert same_function(g, f)
    library = FunctionLibrary(library_of(f)).merged(library_of(g))
    assert list(library.message.function) == [f]


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_everything_else_counts(change: Change) -> None:
    """A library refuses a second function of one name."""
    f, g = example(), example()
    change(g)
    assert not same_function(f, g)
    assert not same_function(g, f)
    with pytest.raises(InvalidArgumentError, match="'F' because a different function with the same name"):
        FunctionLibrary(library_of(f)).merged(library_of(g))


@given(st.data())
def test_no_order_that_means_nothing_counts(data: st.DataObject) -> None:
    """Any order of nodes, control inputs, control outputs and attrs is the same function."""
    f, g = example(), example()
    fields: list[Any] = [g.node_def, g.signature.attr, g.signature.control_output]
    for field in fields:
        items = data.draw(st.permutations(list(field)))
        del field[:]
        field.extend(items)
    for node in g.node_def:
        control = [name for name in node.input if name[0] == "^"]
        kept = [name for name in node.input if name[0] != "^"]
        node.input[:] = kept + data.draw(st.permutations(control))
    assert same_function(f, g)


def test_tensors_too_large_to_be_read_count_as_they_are_written() -> None:
    """A value that one number fills is not spread out to be compared."""
    f, g = example(), example()
    for function, numbers in ((f, [1.0]), (g, [1.0, 1.0])):
        tensor = function.node_def[0].attr["value"].tensor
        tensor.tensor_content = b""
        tensor.float_val.extend(numbers)
        tensor.tensor_shape.dim[0].size = 1 << 40
    assert same_function(f, f)
    assert not same_function(f, g)
