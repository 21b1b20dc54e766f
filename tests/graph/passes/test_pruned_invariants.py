"""Rules of the graph of a request: each is broken once."""

from __future__ import annotations

from collections.abc import Callable

from partita.graph import ClientRequest, Graph, Node, client_graph, graph_def_to_graph
from partita.graph.builder import GraphBuilder
from partita.graph.passes.pruned_invariants import check_pruned
from tests.invariants import assert_all_are_broken
from tests.strategies import cpu

REQUEST = ClientRequest(["x"], ["z"], ["t"], device=cpu(0))


def _checked(change: Callable[[Graph], object]) -> Callable[[], None]:
    """Checks the graph of REQUEST, cut out of x -> y -> z and y -> t, after a change."""

    def check() -> None:
        b = GraphBuilder()
        y = b.op("Neg", b.placeholder("x", "float32", ()), name="y")
        b.op("Abs", y, name="z")
        b.op("Sign", y, name="t")
        full = graph_def_to_graph(b.graph_def(), add_default_attrs=True)
        pruned = client_graph(full, REQUEST)
        check_pruned(pruned, full, REQUEST)
        change(pruned)
        check_pruned(pruned, full, REQUEST)

    return check


def _node(graph: Graph, name: str) -> Node:
    node_id = graph.find_node(name)
    assert node_id is not None
    return node_id


def _without(graph: Graph, name: str) -> None:
    graph.keep_only(graph.live_nodes() != _node(graph, name).id)
    graph.fix_source_and_sink_edges()


def _computed(graph: Graph) -> None:
    x = graph.add_node("x", "Placeholder", {"dtype": "float32"})
    graph.update_edge(x, 0, _node(graph, "y"), 0)
    graph.fix_source_and_sink_edges()


def _needless(graph: Graph) -> None:
    graph.add_node("needless", "NoOp")
    graph.fix_source_and_sink_edges()


def _renamed(graph: Graph, name: str, new_name: str) -> None:
    """The names are as in a graph whose name index has not been built yet."""
    graph._names[_node(graph, name).id] = new_name
    graph._by_name = None


def test_every_rule_is_reported_when_it_is_broken() -> None:
    assert_all_are_broken(
        "graph/passes/pruned_invariants.py",
        {
            "ids have no holes": _checked(lambda graph: _without(graph, "_retval_z_0_0")),
            "a feed is an _Arg or a _Recv of the tensor's type at the client": _checked(
                lambda graph: graph.assign_device(_node(graph, "_arg_x_0_0").id, cpu(1))
            ),
            "a feed says which it is": _checked(lambda graph: _node(graph, "_arg_x_0_0").add_attr("index", 1)),
            "a fetch is a _Retval or a _Send of its tensor at the client": _checked(
                lambda graph: graph.update_edge(_node(graph, "t"), 0, _node(graph, "_retval_z_0_0"), 0)
            ),
            "a fetch says which it is": _checked(lambda graph: _node(graph, "_retval_z_0_0").add_attr("index", 1)),
            "what is fed is not computed": _checked(_computed),
            "every target is there": _checked(lambda graph: _renamed(graph, "t", "other")),
            "every node leads to a fetch or a target": _checked(_needless),
        },
    )
