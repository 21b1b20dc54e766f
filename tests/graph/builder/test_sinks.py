"""One front end, two sinks: the same calls make the same nodes, as messages and in the columns of a graph."""

from __future__ import annotations

import pytest

from partita.errors import InvalidArgumentError
from partita.graph import Graph, GraphBuilder, graph_def_to_graph
from partita.graph.builder.extension import Extension
from partita.graph.builder.front_end import NodeMaker


def make(b: NodeMaker) -> None:
    """Makes scopes, devices, lists, constants, defaults, control inputs, names in use, and a loop's back edge."""
    x = b.placeholder("x", "float32", (None, 4))
    with b.scope("layer"), b.device("/device:CPU:0"):
        y = b.op("MatMul", x, [[1.0], [2.0], [3.0], [4.0]], transpose_b=False)
        z = b.op("ConcatV2", [y[0], y + 1.0], 1)
    with b.control_dependencies(z):
        b.op("Relu", x, name="layer/MatMul")
        entry = b.op("Enter", z, frame_name="loop")
    merge = b.op("Merge", [entry[0], b.later("float32")])
    b.close_loop(merge, b.op("NextIteration", merge[0]))
    b.group(y, z, name="end")


def test_both_sinks_take_the_same_nodes() -> None:
    """A GraphDef that is imported equals the graph whose columns were filled."""
    messages, columns = GraphBuilder(), Extension(Graph())
    make(messages)
    make(columns)
    written, graph = graph_def_to_graph(messages.graph_def()).to_graph_def(), columns.graph().to_graph_def()
    assert {node.name: node for node in graph.node} == {node.name: node for node in written.node}


@pytest.mark.parametrize("b", [GraphBuilder(), Extension(Graph())], ids=["messages", "columns"])
def test_both_sinks_refuse_the_same(b: NodeMaker) -> None:
    """The front end checks a node before it reaches a sink."""
    x = b.placeholder("x", "float32", ())
    with pytest.raises(InvalidArgumentError, match="Relu has no attr 'alpha'"):
        b.op("Relu", x, alpha=1.0)
    with pytest.raises(InvalidArgumentError, match="Inconsistent values for attr 'T' DT_FLOAT"):
        b.op("AddV2", x, b.constant(1, "int32"))
    with pytest.raises(InvalidArgumentError, match="belongs to another GraphBuilder"):
        b.op("Relu", GraphBuilder().placeholder("x", "float32", ()))
    with pytest.raises(InvalidArgumentError, match="'y' is no node of this graph"):
        b.operation("y")
