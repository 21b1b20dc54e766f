"""The debug info of a GraphDef comes through import and export as it was, whatever is in it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from partita.graph.debug_info import debug_info_field, debug_info_of
from partita.graph.graphdef.importer import graph_def_to_graph
from partita.graph.protos import GraphDef


@given(st.binary(max_size=300))
def test_debug_info_is_exported_as_it_was_imported(info: bytes) -> None:
    """Also from a copy of the graph."""
    graph_def = GraphDef()
    graph_def.node.add(name="n", op="NoOp")
    data = graph_def.SerializeToString() + debug_info_field(info)
    graph = graph_def_to_graph(data)
    for exported in (graph.to_graph_def(), graph.clone().to_graph_def()):
        assert debug_info_of(GraphDef.FromString(exported.SerializeToString())) == info
        assert [node.name for node in exported.node] == ["n"]
