"""A graph imports as the GraphDef that it writes: same nodes, ids, edges and order, whatever was done to it before."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError, PartitaError
from partita.graph import DataType, Graph, GraphDef, graph_def_to_graph
from partita.graph.columns import SINK_ID
from partita.graph.graphdef.reimport import reimported
from partita.graph.library.function_library import FunctionLibrary
from partita.graph.protos import FunctionDefLibrary
from tests.actors.running.function_programs import FunctionProgram, function_programs
from tests.devices.timing.programs import Op, Program, Sequence, Writer, programs
from tests.strategies import GraphCase, graph_cases


def columns(graph: Graph) -> tuple[object, ...]:
    """All that a graph has, by id."""
    edges = graph.edge_arrays()
    ends = (column.tolist() for column in (edges.src, edges.src_output, edges.dst, edges.dst_input))
    kinds = [(kind.op, kind.entries) for kind in graph.all_properties() if kind is not None]
    devices = [graph.requested_device(i) for i in range(graph.num_node_ids)]
    return graph.names(), kinds, devices, *ends, graph.library.SerializeToString(deterministic=True)


def assert_imports_as_its_message(graph: Graph) -> None:
    """With and without default attrs."""
    for defaults in (False, True):
        none = FunctionLibrary(FunctionDefLibrary())
        ours = reimported(graph, none, add_default_attrs=defaults, allow_internal_names=True)
        theirs = graph_def_to_graph(graph.to_graph_def(), add_default_attrs=defaults, allow_internal_names=True)
        assert ours is not None
        assert columns(ours) == columns(theirs)


def shuffled(graph_def: GraphDef, order: st.DataObject) -> Graph:
    """The graph of a message whose nodes are in any order, some of them taken out again, with more control edges."""
    nodes = order.draw(st.permutations(list(graph_def.node)))
    del graph_def.node[:]
    graph_def.node.extend(nodes)
    graph = graph_def_to_graph(graph_def)
    spare = [graph.add_node(f"spare{k}", "NoOp") for k in range(3)]
    some = [node for node in graph.op_nodes() if node.op != "NoOp"]
    for node in order.draw(st.lists(st.sampled_from(some), max_size=4)):
        graph.add_control_edge(order.draw(st.sampled_from(spare)), node)
    graph.remove_node(spare[1])
    return graph


@given(graph_cases(), st.data())
def test_drawn_graphs(case: GraphCase, order: st.DataObject) -> None:
    """In any order of nodes, with gaps between ids and late control edges."""
    assert_imports_as_its_message(shuffled(case.graph_def, order))


@given(programs(), st.data())
def test_loops_and_conditionals(program: Program, order: st.DataObject) -> None:
    """Edges that close loops come last."""
    assert_imports_as_its_message(shuffled(Writer().graph_def(Sequence((Op("Neg"), program))), order))


@given(function_programs(conflicting=False))
def test_functions(case: FunctionProgram) -> None:
    """Calls and their library."""
    assert_imports_as_its_message(graph_def_to_graph(case.graph_def))


def test_errors_are_those_of_the_message() -> None:
    """A missing input, an input of another type, a cycle."""
    missing, types, cycle = Graph(), Graph(), Graph()
    missing.add_node("a", "Neg", {"T": DataType.FLOAT})
    x = types.add_node("x", "Placeholder", {"dtype": DataType.INT32})
    types.add_edge(x, 0, types.add_node("y", "Neg", {"T": DataType.FLOAT}), 0)
    ends = [cycle.add_node(name, "NoOp") for name in "ab"]
    cycle.add_control_edge(ends[0], ends[1])
    cycle.add_control_edge(ends[1], ends[0])
    for graph in (missing, types, cycle):
        with pytest.raises(InvalidArgumentError) as ours:
            graph_def_to_graph(graph)
        with pytest.raises(PartitaError) as theirs:
            graph_def_to_graph(graph.to_graph_def())
        assert str(ours.value) == str(theirs.value)
    assert types.num_node_ids > SINK_ID
