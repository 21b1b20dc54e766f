"""Rules of a lowered graph: each is broken once."""

from __future__ import annotations

from collections.abc import Callable

from partita.graph import Graph, graph_def_to_graph
from partita.graph.builder import GraphBuilder
from partita.graph.library.calls import is_partitioned_call
from partita.graph.passes.lower_functional import lower_functional
from partita.graph.passes.lowered_invariants import check_lowered
from tests.function_defs import calling, func_attr, function_of
from tests.invariants import assert_all_are_broken


def _called() -> Graph:
    """The call `c` of a function that negates."""
    b = GraphBuilder()
    b.op("Neg", b.placeholder("x0", "float32", ()), name="y")
    function = function_of("F", b.graph_def(), ["x0:0"], ["y:0"], [])
    return graph_def_to_graph(
        calling("PartitionedCall", function, f=func_attr("F")).graph_def(), add_default_attrs=True
    )


def _checked(change: Callable[[Graph], object]) -> Callable[[], None]:
    """Checks the graph after the call has been inlined, and a change."""

    def check() -> None:
        before = _called()
        graph = lower_functional(before, inline_calls=True)
        change(graph)
        _check(graph, before)

    return check


def _check(graph: Graph, original: Graph) -> None:
    check_lowered(graph, original, is_partitioned_call, fetchable=True)


def _not_lowered() -> None:
    before = _called()
    _check(before.clone(), before)


def _without_c(graph: Graph) -> None:
    node = graph.find_node("c")
    assert node is not None
    graph.remove_node(node)


def _without_outputs(graph: Graph) -> None:
    _without_c(graph)
    graph.add_node("c", "NoOp")


def _leaving_no_loop(graph: Graph) -> None:
    source = graph.find_node("x0")
    assert source is not None
    graph.add_edge(source, 0, graph.add_node("exit", "Exit", {"T": "float32"}), 0)
    graph.add_edge(graph.node(graph.num_node_ids - 1), 0, graph.add_node("after", "Neg", {"T": "float32"}), 0)


def test_every_rule_is_reported_when_it_is_broken() -> None:
    assert_all_are_broken(
        "graph/passes/lowered_invariants.py",
        {
            "what was to be lowered is": _not_lowered,
            "every name is still there": _checked(_without_c),
            "what could be fetched still can be": _checked(_without_outputs),
            "frames that were well formed stay so": _checked(_leaving_no_loop),
        },
    )
