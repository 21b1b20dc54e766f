"""Symbolic gradients are the nodes, in the order, of TensorFlow's AddSymbolicGradients (semantics by its source)."""

from __future__ import annotations

import pytest

from partita.errors import InternalError
from partita.graph.analysis.data_edges import Output
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import DataType
from partita.graph.gradients import add_symbolic_gradients
from partita.graph.graph import Graph


def output(graph: Graph, name: str) -> Output:
    node = graph.find_node(name)
    assert node is not None
    return node.id, 0


def undone(builder: GraphBuilder, ys: list[str], xs: list[str]) -> tuple[list[str], list[str]]:
    """The nodes that are added, as "name = op(inputs)", and the names of the gradients; dy flows into each of `ys`."""
    graph = builder.graph()
    first = graph.num_node_ids
    dy = output(graph, "dy")
    targets, sources = ([output(graph, name) for name in names] for names in (ys, xs))
    found = add_symbolic_gradients(graph, targets, sources, [dy] * len(ys))
    new = [node for node in graph.op_nodes() if node.id >= first]
    texts = []
    for node in new:
        inputs = ", ".join(f"{edge.src.name}:{edge.src_output}" for edge in node.input_edges())
        texts.append(f"{node.name} = {node.op}({inputs})")
    return texts, [f"{graph.node(node).name}:{port}" for node, port in found]


@pytest.fixture
def builder() -> GraphBuilder:
    made = GraphBuilder()
    for name in ("x", "w", "dy"):
        made.placeholder(name, "float32")
    return made


def test_each_node_between_gets_one_that_reads_its_inputs_and_what_flows_back(builder: GraphBuilder) -> None:
    product = builder.op("MatMul", "x", "w", name="product")
    builder.op("StopGradient", builder.op("Tanh", product, name="tanh"), name="y")
    assert undone(builder, ["y"], ["x", "w"]) == (
        [
            "Func/_0 = SymbolicGradient(product:0, dy:0)",
            "Func/_1 = SymbolicGradient(x:0, w:0, Func/_0:0)",
        ],
        ["Func/_1:0", "Func/_1:1"],
    )


def test_the_node_names_the_op_and_its_attrs_as_a_function(builder: GraphBuilder) -> None:
    builder.identity(builder.op("MatMul", "x", "w", transpose_a=True), name="y")
    graph = builder.graph()
    add_symbolic_gradients(graph, [output(graph, "y")], [output(graph, "x")], [output(graph, "dy")])
    node = graph.find_node("Func/_0")
    assert node is not None
    function = node.attr("f")
    assert function.name == "MatMul"
    assert function.attr["transpose_a"].b
    assert not function.attr["transpose_b"].b
    assert node.attr("Tin") == (DataType.FLOAT,) * 3
    assert node.attr("Tout") == (DataType.FLOAT,) * 2


def test_what_flows_back_several_times_is_added_in_the_order_of_its_coming(builder: GraphBuilder) -> None:
    x = builder.tensor("x")
    builder.identity(builder.op("Mul", builder.op("Neg", x, name="neg"), x, name="mul"), name="y")
    assert undone(builder, ["y"], ["x"]) == (
        [
            "Func/_0 = SymbolicGradient(neg:0, x:0, dy:0)",
            "Func/_1 = SymbolicGradient(x:0, Func/_0:0)",
            "Func/_2 = AddN(Func/_0:1, Func/_1:0)",
        ],
        ["Func/_2:0"],
    )


def test_through_an_op_without_gradient_nothing_flows_but_its_inputs_do_not_wait_for_it(builder: GraphBuilder) -> None:
    x = builder.tensor("x")
    builder.identity(builder.op("Fill", builder.op("Shape", x, name="shape"), 2.0, name="fill"), name="y")
    texts, found = undone(builder, ["y"], ["x"])
    assert texts == ["Func/_0 = SymbolicGradient(shape:0, fill/value:0, dy:0)", "Func/_1 = ZerosLike(x:0)"]
    assert found == ["Func/_1:0"]


def test_a_reader_that_no_y_depends_on_is_waited_for_in_vain(builder: GraphBuilder) -> None:
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
    texts, found = undone(builder, ["y"], ["v", "x"])
    assert texts == ["Func/_0 = ReadVariableOp(v:0)", "Func/_1 = ZerosLike(Func/_0:0)"]
    assert found == ["Func/_1:0", "dy:0"]
