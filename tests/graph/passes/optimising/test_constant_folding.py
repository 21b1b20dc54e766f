"""Constant folding: which nodes are folded, into which constants, and which stay."""

from __future__ import annotations

import pytest

from partita.graph.builder import GraphBuilder
from partita.graph.passes.optimising.constant_folding import fold_constants
from partita.graph.passes.optimising.dead_nodes import remove_dead_nodes
from tests.goldens import assert_text
from tests.graph.passes.evaluator import CountingEvaluator, text_of


def _folded(b: GraphBuilder) -> str:
    """The text of a graph after folding, without nodes that have no consumers."""
    return text_of(remove_dead_nodes(fold_constants(b.graph(), CountingEvaluator())))


def test_a_constant_takes_the_place_of_what_it_is_computed_from() -> None:
    """On the device of the node that it replaces; the argument is unchanged."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (2,))
    with b.device("/cpu:1"):
        two = b.op("Mul", b.constant([1.0, 2.0], name="a"), b.constant(2.0, name="b"), name="two")
    b.op("AddV2", x, b.op("Neg", two, name="minus"), name="y")
    graph = b.graph()
    before = str(graph)
    assert_text(
        text_of(remove_dead_nodes(fold_constants(graph, CountingEvaluator()))),
        """
        3 nodes
        x: float = Placeholder() {shape=[2]}
        minus/_0__cf__: float = Const() {value=[2] -2 -4}
        y: float = AddV2(x, minus/_0__cf__)
        """,
    )
    assert str(graph) == before


def test_the_constant_waits_for_what_the_folded_nodes_waited_for() -> None:
    """Control inputs of all folded nodes are gathered, through foldable nodes too; a constant has none of its own."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", ())
    first, second = b.op("Print", x, [x], name="first"), b.op("Print", x, [x], name="second")
    constant = b.constant(1.0, name="one", control=[first])
    through = b.op("NoOp", name="through", control=[second])
    b.op("AddV2", x, b.op("Neg", constant, name="minus", control=[through]), name="y")
    assert_text(
        _folded(b),
        """
        5 nodes
        x: float = Placeholder() {shape=[]}
        first: float = Print(x, x)
        second: float = Print(x, x)
        minus/_0__cf__: float = Const(^first, ^second) {value=-1}
        y: float = AddV2(x, minus/_0__cf__)
        """,
    )


def test_what_has_an_effect_or_changes_is_not_folded() -> None:
    """Random numbers, placeholders, control flow, calls; nor are nodes that read them."""
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
    """The node that fails stays, so that it fails in the step."""
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
    folded = fold_constants(graph, CountingEvaluator(), max_constant_bytes=limit)
    assert (folded is not graph) == is_folded


def test_an_unread_value_is_not_folded_and_a_constant_stays_itself() -> None:
    """A constant is made only for a value that an unfolded node reads."""
    b = GraphBuilder()
    b.op("Neg", b.constant(1.0))
    b.op("AddV2", b.placeholder("x", "float32", ()), b.constant(2.0))
    graph = b.graph()
    assert fold_constants(graph, CountingEvaluator()) is graph


def test_shape_ops_are_folded_where_the_shape_is_known() -> None:
    """Shape, Size, Rank and ShapeN; the constants wait for the former input, as it may be dead."""
    b = GraphBuilder()
    x, y = b.placeholder("x", "float32", (2, 3)), b.placeholder("y", "float32", (None, 3))
    for name, tensor in (("x", x), ("y", y)):
        for op in ("Shape", "Size", "Rank"):
            b.op("Print", b.op(op, tensor, name=f"{name}_{op}"), [x], name=f"use_{name}_{op}")
    both = b.op("ShapeN", [x, x], name="both")
    b.op("Print", both[1], [x], name="use_both")
    folded = fold_constants(b.graph(), CountingEvaluator(), shapes={"x": [(2, 3)], "y": [(None, 3)]})
    assert_text(
        text_of(remove_dead_nodes(folded)),
        """
        16 nodes
        x: float = Placeholder() {shape=[2,3]}
        y: float = Placeholder() {shape=[?,3]}
        y_Shape: int32 = Shape(y)
        use_y_Shape: int32 = Print(y_Shape, x)
        y_Size: int32 = Size(y)
        use_y_Size: int32 = Print(y_Size, x)
        both/_0__cf__: int32 = Const(^x) {value=[2] 2 3}
        use_both: int32 = Print(both/_0__cf__, x)
        x_Rank/_1__cf__: int32 = Const(^x) {value=2}
        use_x_Rank: int32 = Print(x_Rank/_1__cf__, x)
        x_Shape/_2__cf__: int32 = Const(^x) {value=[2] 2 3}
        use_x_Shape: int32 = Print(x_Shape/_2__cf__, x)
        x_Size/_3__cf__: int32 = Const(^x) {value=6}
        use_x_Size: int32 = Print(x_Size/_3__cf__, x)
        y_Rank/_4__cf__: int32 = Const(^y) {value=2}
        use_y_Rank: int32 = Print(y_Rank/_4__cf__, x)
        """,
    )


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
    assert_text(
        _folded(b),
        """
        9 nodes @?/job:localhost/replica:0/task:0/device:GPU:0
        x: float = Placeholder() {shape=[2]}
        Const_2: float = Const() {value=[2] 1 2}
        Neg_1: float = Neg(Const_2)
        host_int64: int64 = Shape(Neg_1)
        w: float = Reshape(x, host_int64)
        float/_0__cf__: float = Const() {value=-1}
        y: float = AddV2(x, float/_0__cf__)
        host_int32/_1__cf__: int32 = Const() {value=[1] 2}
        z: float = Reshape(x, host_int32/_1__cf__)
        """,
    )


def test_strings_and_narrow_types_keep_their_element_type() -> None:
    """The constant has the type that the node declares."""
    b = GraphBuilder()
    x = b.placeholder("x", "string", ())
    b.op("StringJoin", [x, b.op("StringJoin", [b.constant(b"a"), b.constant(b"b")], name="ab")], name="y")
    h = b.placeholder("h", "bfloat16", ())
    b.op("AddV2", h, b.op("Neg", b.constant(1.0, "bfloat16"), name="minus"), name="z")
    assert_text(
        _folded(b),
        """
        6 nodes
        x: string = Placeholder() {shape=[]}
        h: bfloat16 = Placeholder() {shape=[]}
        ab/_0__cf__: string = Const() {value=ab}
        y: string = StringJoin(x, ab/_0__cf__)
        minus/_1__cf__: bfloat16 = Const() {value=-1}
        z: bfloat16 = AddV2(h, minus/_1__cf__)
        """,
    )
