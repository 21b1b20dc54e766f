"""What is read from a tensor list has the shapes that were written to it; an import knows nothing of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from partita.graph import DataType, Graph, GraphBuilder
from partita.graph.analysis.joined import JoinedGraph
from partita.graph.builder.handles import Tensor
from partita.graph.shape_inference.infer import Shapes, infer_joined, infer_shapes
from partita.graph.structured import cond, while_loop
from tests.function_defs import func_attr, function_of

OPEN = np.array([-1, 3], np.int32)
ELEMENT: dict[str, Any] = {"element_dtype": DataType.FLOAT}  # Any: attr values of several types


def in_step(graph: Graph, name: str) -> Shapes:
    return infer_joined(JoinedGraph({"": graph})).by_name()[name]


def reserved(b: GraphBuilder, shape: object = OPEN) -> Tensor:
    """A list of five elements, none of which is written yet."""
    return b.op("TensorListReserve", shape, np.int32(5), shape_type=DataType.INT32, **ELEMENT)[0]


def with_item(b: GraphBuilder, tensors: Tensor, item: object, index: object = np.int32(0)) -> Tensor:
    return b.op("TensorListSetItem", tensors, index, item, **ELEMENT)[0]


def stacked(b: GraphBuilder, tensors: Tensor, name: str = "y") -> Tensor:
    return b.op("TensorListStack", tensors, OPEN, num_elements=5, name=name, **ELEMENT)[0]


ZEROS = np.zeros((5, 4, 3), np.float32)
MADE: dict[str, Callable[[GraphBuilder], Tensor]] = {
    "set": lambda b: with_item(b, reserved(b), ZEROS[0]),
    "set of any shape": lambda b: with_item(b, reserved(b, np.int32(-1)), ZEROS[0]),
    "push": lambda b: b.op("TensorListPushBack", b.op("EmptyTensorList", OPEN, np.int32(-1), **ELEMENT), ZEROS[0])[0],
    "rows": lambda b: b.op("TensorListFromTensor", ZEROS, OPEN, **ELEMENT)[0],
    "scatter": lambda b: b.op("TensorListScatterV2", ZEROS, np.arange(5, dtype=np.int32), OPEN, np.int32(5))[0],
    "resize": lambda b: b.op("TensorListResize", MADE["set"](b), np.int32(7))[0],
    "identity": lambda b: b.op("IdentityN", [b.constant(0), MADE["rows"](b)])[1],
    "lists": lambda b: b.op("TensorListConcatLists", MADE["set"](b), MADE["rows"](b), **ELEMENT)[0],
    "reserved": lambda b: reserved(b, np.array([4, 3], np.int32)),
}


@pytest.mark.parametrize("made", MADE)
def test_what_is_read_is_as_large_as_what_is_written(made: str) -> None:
    """Whatever makes the list and whatever reads it; an import knows the sizes that are stated."""
    b = GraphBuilder()
    tensors, some = MADE[made](b), b.constant(np.array([0, 2], np.int32))
    stacked(b, tensors, "stack")
    b.op("TensorListGetItem", tensors, b.constant(0), OPEN, name="item", **ELEMENT)
    b.op("TensorListGather", tensors, some, OPEN, name="some", **ELEMENT)
    b.op("TensorListPopBack", tensors, OPEN, name="last", **ELEMENT)
    b.op("TensorListPopBack", b.op("TensorListPopBack", tensors, OPEN, **ELEMENT)[0], OPEN, name="second", **ELEMENT)
    graph = b.graph()
    assert in_step(graph, "stack") == ((5, 4, 3),)
    assert in_step(graph, "item") == ((4, 3),)
    assert in_step(graph, "some") == ((2, 4, 3),)
    assert in_step(graph, "last") == in_step(graph, "second") == ((), (4, 3))
    assert infer_shapes(graph)["stack"] == ((5, 4 if made == "reserved" else None, 3),)


def test_the_shape_of_elements_is_a_vector_of_known_length() -> None:
    """As long as the stated rank, also before the run; TensorFlow 2.21 gives the same."""
    b = GraphBuilder()
    for name, tensors in {"ranked": reserved(b), "open": reserved(b, np.int32(-1))}.items():
        b.op("TensorListElementShape", tensors, shape_type=DataType.INT32, name=name)
    shapes = infer_shapes(b.graph())
    assert (shapes["ranked"], shapes["open"]) == (((2,),), (None,))


def test_elements_of_several_shapes_leave_sizes_unknown() -> None:
    """Those of pieces too; what contradicts the reading op is not believed."""
    b = GraphBuilder()
    stacked(b, with_item(b, with_item(b, reserved(b), ZEROS[0]), ZEROS[0, 1:], np.int32(1)), "two")
    lengths = b.constant(np.array([2, 3], np.int64))
    pieces = b.op("TensorListSplit", ZEROS[:, 0], np.array(-1, np.int32), lengths, **ELEMENT)[0]
    b.op("TensorListConcatV2", pieces, np.int32(-1), np.zeros(0, np.int64), name="pieces", **ELEMENT)
    stacked(b, with_item(b, reserved(b, np.int32(-1)), np.zeros(7, np.float32)), "other")
    graph = b.graph()
    assert in_step(graph, "two") == ((5, None, 3),)
    assert in_step(graph, "pieces") == ((None, 3), (None,))
    assert in_step(graph, "other") == ((5, None, 3),)


def test_a_list_states_the_shape_that_it_was_made_with() -> None:
    """Its unknown sizes stay -1 in a run, whatever is written, so they give no value."""
    b = GraphBuilder()
    for name, shape in (("open", OPEN), ("known", np.array([4, 3], np.int32))):
        tensors = with_item(b, reserved(b, shape), ZEROS[0])
        b.op("TensorListElementShape", tensors, shape_type=DataType.INT32, name=name)
    inferred = infer_joined(JoinedGraph({"": b.graph()}))
    assert inferred.by_name()["open"] == inferred.by_name()["known"] == ((2,),)
    values = {inferred.graph.names[n]: value.tolist() for (n, _), value in inferred.values.items()}
    assert "open" not in values
    assert values["known"] == [4, 3]


def grown(b: GraphBuilder, x: Tensor, *, grows: bool) -> Tensor:
    """What a loop has written: x in every turn, or one more row of it in each."""

    def body(i: Tensor, value: Tensor, tensors: Tensor) -> tuple[Tensor, ...]:
        following = b.op("ConcatV2", [value, np.zeros((1, 3), np.float32)], np.int32(0))[0] if grows else value
        return i + 1, following, with_item(b, tensors, value, i)

    return while_loop(b, lambda i, *_: b.op("Less", i, 5)[0], body, [0, x, reserved(b)])[2]


@pytest.mark.parametrize(("grows", "size"), [(False, 4), (True, None)])
def test_a_loop_writes_elements_of_one_shape_or_of_several(grows: bool, size: int | None) -> None:
    """The list that begins the loop has none yet."""
    b = GraphBuilder()
    stacked(b, grown(b, b.constant(ZEROS[0]), grows=grows))
    assert in_step(b.graph(), "y") == ((5, size, 3),)


@pytest.mark.parametrize(("grows", "size"), [(False, 4), (True, None)])
def test_a_list_goes_in_and_out_of_functions(grows: bool, size: int | None) -> None:
    """Of one that is called, and of the body of a While."""
    inner = GraphBuilder()
    tensors, x = inner.placeholder("list", "variant", ()), inner.placeholder("x", "float32")
    following = inner.op("ConcatV2", [x, x], np.int32(0))[0] if grows else inner.identity(x)
    written = with_item(inner, tensors, x)
    b = GraphBuilder()
    b.function(function_of("f", inner.graph_def(), ["list:0", "x:0"], [written.name, following.name]))
    inner = GraphBuilder()
    tensors, x = inner.placeholder("list", "variant", ()), inner.placeholder("x", "float32")
    goes_on = inner.op("Less", inner.op("TensorListLength", tensors), 5)[0]
    b.function(function_of("c", inner.graph_def(), ["list:0", "x:0"], [goes_on.name]))
    types, arguments = ["variant", "float32"], [reserved(b), b.constant(ZEROS[0])]
    stacked(b, b.op("PartitionedCall", arguments, Tin=types, Tout=types, f=func_attr("f"))[0], "called")
    stacked(b, b.op("While", arguments, T=types, cond=func_attr("c"), body=func_attr("f"))[0], "repeated")
    graph = b.graph()
    assert in_step(graph, "called") == ((5, 4, 3),)
    assert in_step(graph, "repeated") == ((5, size, 3),)


@pytest.mark.parametrize(("rows", "size"), [(4, 4), (2, None)])
def test_a_condition_gives_one_list_of_two(rows: int, size: int | None) -> None:
    """Its elements have what those of both lists have in common."""
    b = GraphBuilder()
    p = b.placeholder("p", "bool", ())
    (tensors,) = cond(b, p, lambda: MADE["set"](b), lambda: with_item(b, reserved(b), np.zeros((rows, 3), np.float32)))
    stacked(b, tensors)
    assert in_step(b.graph(), "y") == ((5, size, 3),)
