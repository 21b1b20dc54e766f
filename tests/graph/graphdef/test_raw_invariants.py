"""Rules of a graph that has just been imported: each is broken once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from partita.errors import InternalError
from partita.graph import Graph, graph_def_to_graph
from partita.graph.builder import GraphBuilder
from partita.graph.graphdef.invariants import check_raw
from tests.invariants import assert_all_are_broken


def _checked(change: Callable[[Graph], object]) -> Callable[[], None]:
    """Checks x -> y -> z, where y waits for x, after a change."""

    def check() -> None:
        b = GraphBuilder()
        x = b.placeholder("x", "float32", ())
        y = b.op("Neg", x, name="y")
        with b.control_dependencies(x):
            b.op("Abs", y, name="z")
        graph = graph_def_to_graph(b.graph_def())
        check_raw(graph)
        change(graph)
        check_raw(graph)

    return check


def _without_z(graph: Graph) -> None:
    graph.remove_node(graph.node(4))
    graph.fix_source_and_sink_edges()


def _placed(graph: Graph) -> None:
    graph.node(2).assigned_device = "/job:localhost/replica:0/task:0/device:CPU:0"


def test_a_node_may_keep_the_strings_of_its_inputs() -> None:
    """A port may be written "x" or "x:0", control inputs in any order."""
    _checked(lambda graph: graph.set_requested_inputs(4, ["y:0", "^x"]))()
    with pytest.raises(InternalError, match="input strings agree with the edges"):
        _checked(lambda graph: graph.set_requested_inputs(4, ["y:1", "^x"]))()


def test_every_rule_is_reported_when_it_is_broken() -> None:
    assert_all_are_broken(
        "graph/graphdef/invariants.py",
        {
            "ids have no holes": _checked(_without_z),
            "inputs are made before what reads them": _checked(
                lambda graph: graph.add_control_edge(graph.node(3), graph.node(2))
            ),
            "a node waits for another once": _checked(
                lambda graph: graph.add_control_edge(graph.node(2), graph.node(4), allow_duplicates=True)
            ),
            "input strings agree with the edges": _checked(lambda graph: graph.set_requested_inputs(3, ["z"])),
            "all nodes are placed or none is": _checked(_placed),
        },
    )
