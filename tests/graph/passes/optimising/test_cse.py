"""Common subexpressions: which nodes are merged, and which of equal nodes is kept."""

from __future__ import annotations

from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import DataType
from partita.graph.passes.optimising.cse import merge_common_subexpressions
from tests.goldens import assert_text


def test_whole_expressions_are_merged_into_the_first_that_is_visited() -> None:
    """Consumers of the duplicates read the node that is kept, control edges included; the argument is unchanged."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", ())
    for name in "ab":
        b.op("Neg", b.op("Abs", x, name=f"abs_{name}"), name=f"neg_{name}")
        b.op("Print", x, [x], name=f"after_{name}", control=[f"neg_{name}"])
    graph = b.graph()
    before = str(graph)
    assert_text(
        merge_common_subexpressions(graph),
        """
        5 nodes
        x: float = Placeholder() {shape=[]}
        abs_a: float = Abs(x)
        neg_a: float = Neg(abs_a)
        after_a: float = Print(x, x, ^neg_a)
        after_b: float = Print(x, x, ^neg_a)
        """,
    )
    assert str(graph) == before


def test_the_order_of_inputs_matters_only_where_the_op_says_so() -> None:
    """Sums are merged either way round, differences are not."""
    b = GraphBuilder()
    x, y = b.placeholder("x", "float32", ()), b.placeholder("y", "float32", ())
    for op in ("AddV2", "Sub"):
        b.op(op, x, y, name=f"{op}_xy")
        b.op(op, y, x, name=f"{op}_yx")
    assert_text(
        merge_common_subexpressions(b.graph()),
        """
        5 nodes
        x: float = Placeholder() {shape=[]}
        y: float = Placeholder() {shape=[]}
        AddV2_xy: float = AddV2(x, y)
        Sub_xy: float = Sub(x, y)
        Sub_yx: float = Sub(y, x)
        """,
    )


def test_what_must_not_be_merged_stays() -> None:
    """Placeholders, random and variable ops, readers of references, and nodes that differ in an attr of any kind.

    The two equal constants are merged.
    """
    b = GraphBuilder()
    b.placeholder("p", "float32", ())
    b.placeholder("q", "float32", ())
    shape = b.constant([2], "int32", name="shape")
    variable = b.variable("v", "float32", ())
    for name in "ab":
        b.op("RandomUniform", shape, name=f"random_{name}", dtype=DataType.FLOAT)
        b.op("RefIdentity", variable, name=f"ref_{name}")
        b.op("Abs", b.constant(1.0, name=f"one_{name}"), name=f"abs_{name}", attrs={"_where": name})
    assert_text(
        merge_common_subexpressions(b.graph()),
        """
        11 nodes
        p: float = Placeholder() {shape=[]}
        q: float = Placeholder() {shape=[]}
        shape: int32 = Const() {value=[1] 2}
        v: float_ref = VariableV2() {shape=[]}
        random_a: float = RandomUniform(shape)
        ref_a: float_ref = RefIdentity(v)
        one_a: float = Const() {value=1}
        abs_a: float = Abs(one_a) {_where="a"}
        random_b: float = RandomUniform(shape)
        ref_b: float_ref = RefIdentity(v)
        abs_b: float = Abs(one_a) {_where="b"}
        """,
    )


def test_devices_do_not_keep_nodes_apart_but_control_inputs_do() -> None:
    """Of three equal nodes the one with another control input stays, and so does every later one like it."""
    b = GraphBuilder()
    x, gate = b.placeholder("x", "float32", ()), b.op("NoOp", name="gate")
    b.op("Neg", x, name="here", device="/cpu:0")
    b.op("Neg", x, name="there", device="/cpu:1")
    b.op("Neg", x, name="late", control=[gate])
    b.op("Neg", x, name="later", control=[gate])
    assert_text(
        merge_common_subexpressions(b.graph()),
        """
        5 nodes
        x: float = Placeholder() {shape=[]}
        gate = NoOp()
        here: float = Neg(x) @?/cpu:0
        late: float = Neg(x, ^gate)
        later: float = Neg(x, ^gate)
        """,
    )


def test_a_graph_without_duplicates_is_given_back_as_it_is() -> None:
    """The very same object, also where only the order of inputs differs."""
    b = GraphBuilder()
    x, y = b.placeholder("x", "float32", ()), b.placeholder("y", "float32", ())
    _ = x - y, y - x, x + y
    graph = b.graph()
    assert merge_common_subexpressions(graph) is graph
