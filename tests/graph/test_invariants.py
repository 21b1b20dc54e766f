"""Rules of a graph at any stage: each is broken once, and they are checked only when switched on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from partita.errors import InternalError
from partita.graph import Graph, graph_def_to_graph
from partita.graph.builder import GraphBuilder
from partita.graph.checking import are_checked, checking
from partita.graph.columns import SINK_ID, SOURCE_ID
from partita.graph.invariants import Stage, check_loose_ends, check_structure
from partita.graph.ops.properties import NodeProperties
from tests.invariants import assert_all_are_broken


def _graph() -> Graph:
    """x -> y -> z, and p, a bool."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", ())
    b.op("Abs", b.op("Neg", x, name="y"), name="z")
    b.placeholder("p", "bool", ())
    return graph_def_to_graph(b.graph_def())


def _id(graph: Graph, name: str) -> int:
    node_id = graph.find_id(name)
    assert node_id is not None
    return node_id


def _edge(graph: Graph, src: str, port: int, dst: str, dst_port: int) -> None:
    graph.extend_edges([_id(graph, src)], [port], [_id(graph, dst)], [dst_port])


def _checked(change: Callable[[Graph], object]) -> Callable[[], None]:
    """Checks a graph, all of whose ports were connected before, after a change."""

    def check() -> None:
        graph = _graph()
        before = graph.clone()
        change(graph)
        stage = Stage("raw", graph)
        check_structure(stage, original=before)
        check_loose_ends(stage)

    return check


def _without(graph: Graph, src: str, dst: str) -> None:
    graph.remove_edge(next(e for e in graph.edges() if (e.src.name, e.dst.name) == (src, dst)))


def _renamed(graph: Graph, node: int, name: str) -> None:
    graph._names[node] = name


def _with_other_types(graph: Graph) -> None:
    y = graph.node(_id(graph, "y"))
    z = graph.node(_id(graph, "p")).output_types
    graph.set_node_properties(
        y.id, NodeProperties(y.op_def, y.properties.entries, y.input_types, (*y.output_types, *z))
    )


def _reading_a_bool(graph: Graph) -> None:
    _without(graph, "x", "y")
    _edge(graph, "p", 0, "y", 0)


def _skipping_a_port(graph: Graph) -> None:
    add = graph.add_node("add", "AddV2", {"T": "float32"})
    graph.add_edge(graph.node(_id(graph, "x")), 0, add, 1)


def test_every_rule_is_reported_when_it_is_broken() -> None:
    assert_all_are_broken(
        "graph/invariants.py",
        {
            "nodes 0 and 1 are source and sink": _checked(lambda graph: _renamed(graph, SINK_ID, "end")),
            "every node has a name of its own": _checked(lambda graph: _renamed(graph, _id(graph, "y"), "x")),
            "edges join live nodes": _checked(lambda graph: graph._forget([_id(graph, "z")])),
            "nothing comes before the source or after the sink": _checked(
                lambda graph: graph.extend_edges([SINK_ID], [-1], [_id(graph, "x")], [-1])
            ),
            "an edge is for control at both ends or at neither": _checked(lambda graph: _edge(graph, "x", -1, "y", 0)),
            "source and sink have control edges only": _checked(
                lambda graph: graph.extend_edges([SOURCE_ID], [0], [_id(graph, "y")], [0])
            ),
            "loose ends hang on source and sink": _checked(lambda graph: _without(graph, "z", "_SINK")),
            "an edge leaves a port that exists": _checked(lambda graph: _edge(graph, "x", 1, "y", 0)),
            "an edge enters a port that exists": _checked(lambda graph: _edge(graph, "x", 0, "y", 1)),
            "an input port reads what its type says": _checked(_reading_a_bool),
            "an input port reads one tensor": _checked(lambda graph: _edge(graph, "x", 0, "y", 0)),
            "every input port reads a tensor": _checked(lambda graph: _without(graph, "y", "z")),
            "input ports are filled from the first": lambda: _check_raw_ports(_skipping_a_port),
            "port types follow from op and attrs": _checked(_with_other_types),
        },
    )


def _check_raw_ports(change: Callable[[Graph], object]) -> None:
    """Checks a graph as it was imported, which may have open ports."""
    graph = _graph()
    change(graph)
    check_structure(Stage("raw", graph))


def test_the_error_says_stage_rule_node_and_what_was_found() -> None:
    graph = _graph()
    _edge(graph, "x", 0, "y", 0)
    with pytest.raises(InternalError) as caught:
        check_structure(Stage("pruned", graph))
    assert str(caught.value) == (
        "pruned graph, rule 'an input port reads one tensor': an edge from 'x', port 0, to 'y', port 0 is its second "
        "edge; this is a mistake of Partita, please report it with the graph [node 'y', op 'Neg']"
    )


def test_what_was_open_may_stay_open() -> None:
    """A graph whose file leaves a port open is refused when it is cut, not by a checker."""
    graph = _graph()
    _without(graph, "y", "z")
    check_structure(Stage("lowered", graph.copy()), original=graph)
    check_structure(Stage("raw", graph))


def test_nothing_is_checked_unless_told_to() -> None:
    """Checks are on in tests and off otherwise, and the switch is restored."""
    assert are_checked()
    with checking(on=False):
        assert not are_checked()
        broken = graph_def_to_graph(_graph().to_graph_def())
        assert broken.num_nodes == _graph().num_nodes
    assert are_checked()


def test_a_large_graph_is_checked_in_columns() -> None:
    """The rules on nodes and edges use whole columns: no node view is made."""
    graph = _graph()
    identity = graph.add_node("n0", "Identity", {"T": "float32"})
    first = graph.num_node_ids
    graph.extend_nodes([f"m{i}" for i in range(20_000)], [identity.properties] * 20_000, [0] * 20_000)
    ids = np.arange(first, first + 20_000)
    graph.extend_edges(np.concatenate([[identity.id], ids[:-1]]), np.zeros(20_000), ids, np.zeros(20_000))
    graph.add_edge(graph.node(_id(graph, "x")), 0, identity, 0)
    check_structure(Stage("pruned", graph), original=graph)
