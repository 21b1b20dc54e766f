"""Constant folding: what is folded, into what, and what is left as it is."""

from __future__ import annotations

import numpy as np
import pytest

from partita.graph.builder import GraphBuilder
from partita.graph.graph import Graph
from partita.graph.passes.constant_folding import fold_constants
from partita.graph.passes.dead_nodes import remove_dead_nodes
from tests.graph.passes.evaluator import CountingEvaluator, nodes_of


def _folded(b: GraphBuilder) -> Graph:
    return remove_dead_nodes(fold_constants(b.graph(), CountingEvaluator()))


def _value(graph: Graph, name: str) -> object:
    (node,) = (node for node in graph.op_nodes() if node.name.startswith(name))
    return np.asarray(node.attr("value")).tolist()


def test_a_constant_takes_the_place_of_what_it_is_computed_from() -> None:
    """On the device of the node it stands for; the argument stays as it was."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (2,))
    with b.device("/cpu:1"):
        two = b.op("Mul", b.constant([1.0, 2.0], name="a"), b.constant(2.0, name="b"), name="two")
    b.op("AddV2", x, b.op("Neg", two, name="minus"), name="y")
    graph = b.graph()
    before = nodes_of(graph)
    made = remove_dead_nodes(fold_constants(graph, CountingEvaluator()))
    assert nodes_of(made)["y"] == ["AddV2", "x", "minus/_0__cf__"]
    assert _value(made, "minus") == [-2.0, -4.0]
    assert nodes_of(graph) == before


def test_the_constant_waits_for_what_the_folded_nodes_waited_for() -> None:
    """Control inputs of all folded nodes are gathered, through foldable nodes too; a constant has none of its own."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", ())
    first, second = b.op("Print", x, [x], name="first"), b.op("Print", x, [x], name="second")
    one = b.constant(1.0, name="one", control=[first])
    through = b.op("NoOp", name="through", control=[second])
    b.op("AddV2", x, b.op("Neg", one, name="minus", control=[through]), name="y")
    nodes = nodes_of(_folded(b))
    assert nodes["minus/_0__cf__"] == ["Const", "^first", "^second"]


def test_what_has_an_effect_or_changes_is_not_folded() -> None:
    """Random numbers, placeholders, control flow, calls; what reads them neither."""
    b = GraphBuilder()
    shape = b.constant([2], "int32", name="shape")
    b.op("Neg", b.op("RandomUniform", shape, dtype="float32"), name="a")
    b.op("Neg", b.placeholder("x", "float32", ()), name="b")
    b.op("Switch", b.constant(1.0), b.constant(True, "bool"), name="c")
    graph = b.graph()
    evaluator = CountingEvaluator()
    assert fold_constants(graph, evaluator) is graph
    assert not evaluator.asked


def test_a_failure_folds_nothing() -> None:
    """The step is to fail where it would have."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", ())
    b.op("AddV2", x, b.constant(1.0) + b.constant(2.0))
    wrong = b.op("Gather", b.constant([1.0, 2.0], name="params"), b.constant(7, "int32", name="index"), name="wrong")
    b.op("AddV2", x, wrong)
    graph = b.graph()
    evaluator = CountingEvaluator()
    assert fold_constants(graph, evaluator) is graph
    assert evaluator.asked == [["AddV2:0", "wrong:0"]]


@pytest.mark.parametrize(("limit", "is_folded"), [(16, True), (15, False)])
def test_only_a_value_above_the_limit_stays_computed(limit: int, *, is_folded: bool) -> None:
    """A value of just the limit is folded."""
    b = GraphBuilder()
    b.op("AddV2", b.placeholder("x", "float32", (4,)), b.op("Neg", b.constant([1.0, 2.0, 3.0, 4.0])), name="y")
    graph = b.graph()
    made = fold_constants(graph, CountingEvaluator(), max_constant_bytes=limit)
    assert (made is not graph) == is_folded


def test_an_unread_value_is_not_folded_and_a_constant_stays_itself() -> None:
    """Only what others than foldable nodes read is worth a constant."""
    b = GraphBuilder()
    b.op("Neg", b.constant(1.0))
    b.op("AddV2", b.placeholder("x", "float32", ()), b.constant(2.0))
    graph = b.graph()
    assert fold_constants(graph, CountingEvaluator()) is graph


def test_shape_ops_are_folded_where_the_shape_is_known() -> None:
    """Shape, Size, Rank and ShapeN; they wait for what they no longer read, as the value may be dead."""
    b = GraphBuilder()
    x, y = b.placeholder("x", "float32", (2, 3)), b.placeholder("y", "float32", (None, 3))
    for name, tensor in (("x", x), ("y", y)):
        for op in ("Shape", "Size", "Rank"):
            b.op("Print", b.op(op, tensor, name=f"{name}_{op}"), [x], name=f"use_{name}_{op}")
    both = b.op("ShapeN", [x, x], name="both")
    b.op("Print", both[1], [x], name="use_both")
    made = fold_constants(b.graph(), CountingEvaluator(), shapes={"x": [(2, 3)], "y": [(None, 3)]})
    made = remove_dead_nodes(made)
    folded = {"x_Shape": [2, 3], "x_Size": 6, "x_Rank": 2, "y_Rank": 2, "both": [2, 3]}
    assert {name: _value(made, f"{name}/") for name in folded} == folded
    nodes = nodes_of(made)
    assert [name for name in nodes if name in ("x_Shape", "y_Shape", "y_Size", "both")] == ["y_Shape", "y_Size"]
    assert all(node == ["Const", "^x"] or node == ["Const", "^y"] for name, node in nodes.items() if "__cf__" in name)


def test_a_size_beyond_the_type_is_not_folded() -> None:
    """2**31 elements do not fit an int32."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (1 << 16, 1 << 15))
    b.op("Print", b.op("Size", x), [x])
    graph = b.graph()
    assert fold_constants(graph, CountingEvaluator(), shapes={"x": [(1 << 16, 1 << 15)]}) is graph


def test_on_an_accelerator_integers_fold_in_host_memory_only() -> None:
    """Constants of int32 lie on the host there, others on the device; a value elsewhere stays computed."""
    b = GraphBuilder()
    with b.device("/job:localhost/replica:0/task:0/device:GPU:0"):
        x = b.placeholder("x", "float32", (2,))
        b.op("AddV2", x, b.op("Neg", b.constant(1.0), name="float"), name="y")
        shape = b.op("Shape", b.op("Neg", b.constant([1.0, 2.0])), name="host_int32")
        b.op("Reshape", x, shape, name="z")
        long = b.op("Shape", b.op("Neg", b.constant([1.0, 2.0])), out_type="int64", name="host_int64")
        b.op("Reshape", x, long, name="w")
    names = {name.partition("/_")[0] for name in nodes_of(_folded(b)) if "__cf__" in name}
    assert names == {"float", "host_int32"}


def test_strings_and_narrow_types_keep_their_element_type() -> None:
    """The constant has the type that the node declares."""
    b = GraphBuilder()
    x = b.placeholder("x", "string", ())
    b.op("StringJoin", [x, b.op("StringJoin", [b.constant(b"a"), b.constant(b"b")], name="ab")], name="y")
    h = b.placeholder("h", "bfloat16", ())
    b.op("AddV2", h, b.op("Neg", b.constant(1.0, "bfloat16"), name="minus"), name="z")
    made = _folded(b)
    assert _value(made, "ab/") == b"ab"
    assert _value(made, "minus/") == -1.0
