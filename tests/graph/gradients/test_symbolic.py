"""Symbolic gradients are the nodes, in the order, of TensorFlow's AddSymbolicGradients (semantics by its source)."""

from __future__ import annotations

import pytest

from partita.errors import InternalError
from partita.graph.builder import GraphBuilder
from partita.graph.edge_ends import Output
from partita.graph.gradients import add_symbolic_gradients
from partita.graph.graph import Graph
from partita.graph.printer import graph_text
from tests.goldens import assert_text


def output(graph: Graph, name: str) -> Output:
    node = graph.find_node(name)
    assert node is not None
    return node.id, 0


def undone(builder: GraphBuilder, ys: list[str], xs: list[str]) -> str:
    """The added nodes, as "name = op(inputs)", and the names of the gradients; dy is the gradient of each of `ys`."""
    graph = builder.graph()
    before = {node.name for node in graph.op_nodes()}
    dy = output(graph, "dy")
    targets, sources = ([output(graph, name) for name in names] for names in (ys, xs))
    results = add_symbolic_gradients(graph, targets, sources, [dy] * len(ys))
    names = ", ".join(f"{graph.node(node).name}:{port}" for node, port in results)
    return f"{graph_text(graph, only=lambda name: name not in before)}\ngradients: {names}"


@pytest.fixture
def builder() -> GraphBuilder:
    builder = GraphBuilder()
    for name in ("x", "w", "dy"):
        builder.placeholder(name, "float32")
    return builder


def test_each_node_gets_one_that_reads_its_inputs_and_output_gradients(builder: GraphBuilder) -> None:
    product = builder.op("Mul", "x", "w", name="product")
    builder.op("StopGradient", builder.op("Tanh", product, name="tanh"), name="y")
    assert_text(
        undone(builder, ["y"], ["x", "w"]),
        """
        2 of 8 nodes
        Func/_0: float = SymbolicGradient(product, dy) {f=Tanh[T=DT_FLOAT]}
        Func/_1: float, float = SymbolicGradient(x, w, Func/_0) {f=Mul[T=DT_FLOAT]}
        gradients: Func/_1:0, Func/_1:1
        """,
    )


def test_the_node_names_the_op_and_its_attrs_as_a_function(builder: GraphBuilder) -> None:
    builder.constant(0, name="axis")
    builder.identity(builder.op("Sum", "x", "axis", keep_dims=True), name="y")
    assert_text(
        undone(builder, ["y"], ["x"]),
        """
        1 of 7 nodes
        Func/_0: float, int32 = SymbolicGradient(x, axis, dy) {f=Sum[T=DT_FLOAT, Tidx=DT_INT32, keep_dims=true]}
        gradients: Func/_0:0
        """,
    )


def test_several_gradients_of_a_tensor_are_added_as_they_are_computed(builder: GraphBuilder) -> None:
    x = builder.tensor("x")
    builder.identity(builder.op("Mul", builder.op("Neg", x, name="neg"), x, name="mul"), name="y")
    assert_text(
        undone(builder, ["y"], ["x"]),
        """
        3 of 9 nodes
        Func/_0: float, float = SymbolicGradient(neg, x, dy) {f=Mul[T=DT_FLOAT]}
        Func/_1: float = SymbolicGradient(x, Func/_0) {f=Neg[T=DT_FLOAT]}
        Func/_2: float = AddN(Func/_0:1, Func/_1)
        gradients: Func/_2:0
        """,
    )


def test_an_op_without_gradient_gives_none_and_holds_back_no_other_gradient(builder: GraphBuilder) -> None:
    x = builder.tensor("x")
    builder.identity(builder.op("Fill", builder.op("Shape", x, name="shape"), 2.0, name="fill"), name="y")
    assert_text(
        undone(builder, ["y"], ["x"]),
        """
        2 of 9 nodes
        Func/_0: int32, float = SymbolicGradient(shape, fill/value, dy) {f=Fill[T=DT_FLOAT, index_type=DT_INT32]}
        Func/_1: float = ZerosLike(x)
        gradients: Func/_1:0
        """,
    )


def test_a_reader_of_x_on_which_no_y_depends_is_an_error(builder: GraphBuilder) -> None:
    tanh = builder.op("Tanh", "x", name="tanh")
    builder.identity(tanh, name="y")
    builder.op("Neg", tanh)
    with pytest.raises(InternalError, match="no x leads to a y"):
        undone(builder, ["y"], ["x"])


def test_the_gradient_of_a_resource_is_zeros_of_what_it_holds() -> None:
    builder = GraphBuilder()
    builder.placeholder("dy", "float32")
    builder.op("VarHandleOp", name="v", dtype="float32", shape=())
    x = builder.placeholder("x", "float32")
    builder.identity(x, name="y")
    builder.op("ReadVariableOp", "v", dtype="float32")
    assert_text(
        undone(builder, ["y"], ["v", "x"]),
        """
        2 of 7 nodes
        Func/_0: float = ReadVariableOp(v)
        Func/_1: float = ZerosLike(Func/_0)
        gradients: Func/_1:0, dy:0
        """,
    )
