"""Default attrs are added and removed without changing attrs that the author wrote."""

from __future__ import annotations

import pytest

from partita.errors import InvalidArgumentError, NotFoundError
from partita.graph.graphdef.default_attrs import add_defaults_to_graph_def, remove_new_defaults
from partita.graph.ops.registry import OpSignature, lookup_op
from partita.graph.protos import AttrValue, GraphDef, NodeDef, OpDef


def graph_of(*nodes: NodeDef) -> GraphDef:
    """A graph of these nodes."""
    return GraphDef(node=nodes)


def old_registry(op: str) -> OpSignature:
    """The registry of a consumer whose MatMul lacks the newer attrs."""
    message = OpDef.FromString(lookup_op(op).message.SerializeToString())
    kept = [attr for attr in message.attr if not attr.name.startswith("grad_")]
    del message.attr[:]
    message.attr.extend(kept)
    return OpSignature(message)


def test_defaults_are_added_once_and_never_overwrite() -> None:
    """Adding twice changes nothing; existing attrs stay."""
    graph = graph_of(NodeDef(name="m", op="MatMul", attr={"transpose_a": AttrValue(b=True)}))
    add_defaults_to_graph_def(graph)
    once = GraphDef.FromString(graph.SerializeToString())
    add_defaults_to_graph_def(graph)
    assert graph == once
    assert {name: value.b for name, value in graph.node[0].attr.items()} == {
        "transpose_a": True,
        "transpose_b": False,
        "grad_a": False,
        "grad_b": False,
    }


def test_from_a_node_on() -> None:
    """Nodes before the first index are not changed; an index past the end is refused."""
    graph = graph_of(NodeDef(name="a", op="MatMul"), NodeDef(name="b", op="MatMul"))
    add_defaults_to_graph_def(graph, first_node=1)
    assert [len(node.attr) for node in graph.node] == [0, 4]
    with pytest.raises(InvalidArgumentError, match="starting at offset 3 with total nodes in graph: 2"):
        add_defaults_to_graph_def(graph, first_node=3)


def test_unknown_ops() -> None:
    """An unknown op is an error unless it is skipped; the graph's own functions are known."""
    graph = graph_of(NodeDef(name="a", op="Mine"))
    with pytest.raises(NotFoundError, match="Op type not registered 'Mine'"):
        add_defaults_to_graph_def(graph)
    add_defaults_to_graph_def(graph, skip_unknown_ops=True)
    graph.library.function.add().signature.name = "Mine"
    add_defaults_to_graph_def(graph)
    assert not graph.node[0].attr


def test_new_defaults_are_removed() -> None:
    """An attr that an old consumer lacks is removed if it has the default value; others stay."""
    graph = graph_of(NodeDef(name="a", op="MatMul"), NodeDef(name="b", op="MatMul", attr={"grad_a": AttrValue(b=True)}))
    add_defaults_to_graph_def(graph)
    assert remove_new_defaults(graph, old_registry) == {"MatMul": ["grad_a", "grad_b"]}
    assert sorted(graph.node[0].attr) == ["transpose_a", "transpose_b"]
    assert sorted(graph.node[1].attr) == ["grad_a", "transpose_a", "transpose_b"]


def test_attrs_nobody_knows() -> None:
    """An attr that neither side declares is an error, unless its name begins with "_"."""
    graph = graph_of(NodeDef(name="a", op="NoOp", attr={"_x": AttrValue(i=1)}))
    assert remove_new_defaults(graph, old_registry) == {}
    graph.node[0].attr["y"].i = 1
    with pytest.raises(InvalidArgumentError, match="Attr 'y' missing in producer's OpDef"):
        remove_new_defaults(graph, old_registry)
