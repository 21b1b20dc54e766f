"""The rules of an optimised partition: each is broken once."""

from __future__ import annotations

from collections.abc import Callable

from partita.graph import Graph, graph_def_to_graph
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import DataType
from partita.graph.passes.optimising.optimised_invariants import check_optimised
from partita.graph.passes.optimising.optimizer import optimize
from partita.graph.passes.selection import Passes
from tests.graph.passes.evaluator import CountingEvaluator
from tests.invariants import assert_all_are_broken
from tests.strategies import cpu


def _checked(change: Callable[[Graph], object]) -> Callable[[], None]:
    """The check of x + (1 + 2), with a random number beside it, after folding and a change."""

    def check() -> None:
        b = GraphBuilder()
        with b.device(cpu(0)):
            x = b.placeholder("x", "float32", ())
            b.op("AddV2", x, b.constant(1.0, name="a") + b.constant(2.0, name="b"), name="y")
            b.op("RandomUniform", b.constant([2], name="shape"), name="random", dtype="float32")
        graph = graph_def_to_graph(b.graph_def(), add_default_attrs=True)
        graph.assign_devices(graph.requested_device_indices())
        optimised = optimize(graph, Passes.parse("fold,common"), CountingEvaluator())
        assert optimised is not graph
        change(optimised)
        check_optimised(optimised, graph)

    return check


def _without_random(graph: Graph) -> None:
    graph.remove_node(next(node for node in graph.op_nodes() if node.name == "random"))
    graph.fix_source_and_sink_edges()


def _with_random_renamed(graph: Graph) -> None:
    number = graph.find_id("random")
    assert number is not None
    graph._names[number] = "other"
    graph._by_name = None


def _with(op: str, device: str) -> Callable[[Graph], None]:
    """A new node that reads `x`."""

    def change(graph: Graph) -> None:
        source, node = graph.find_node("x"), graph.add_node("new", op, {"T": DataType.FLOAT})
        assert source is not None
        graph.add_edge(source, 0, node, 0)
        node.assigned_device = device
        graph.fix_source_and_sink_edges()

    return change


def _moved(graph: Graph) -> None:
    node = graph.find_node("y")
    assert node is not None
    node.assigned_device = cpu(1)


def test_every_rule_is_reported_when_it_is_broken() -> None:
    assert_all_are_broken(
        "graph/passes/optimising/optimised_invariants.py",
        {
            "ids have no holes": _checked(_without_random),
            "a stateful node stays": _checked(_with_random_renamed),
            "a node that stays is the same": _checked(_moved),
            "a new node computes nothing": _checked(_with("Neg", cpu(0))),
            "a new node is on a device of the partition": _checked(_with("Identity", cpu(1))),
        },
    )
