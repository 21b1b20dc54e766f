"""The graph before partitioning has TensorFlow's node ids and edge ids, which all generated names depend on."""

from __future__ import annotations

import pytest

from partita.graph.graph import Graph
from partita.graph.passes.client_graph import build_client_graph
from partita.graph.passes.client_request import ClientRequest
from tests.conformance.corpus import Case, Step, cases

FAMILIES = ("elementary", "random", "models", "casts", "gpu_partition", "control_flow", "stateful", "epochs")
CASES = [case for family in FAMILIES for case in cases(family)]


def client_graph(case: Case, step: Step) -> Graph:
    """The graph that a session partitions for a step."""
    options = case.info.get("options", {})
    request = ClientRequest(
        list(step.feeds),
        step.fetches,
        step.targets,
        device=options.get("client_device", case.devices[0]),
        by_rendezvous=not options.get("function_convention", True),
    )
    return build_client_graph(case.graph_def(), request)


def listing(graph: Graph) -> tuple[list[str], list[str]]:
    """Lines for nodes and edges as in client.txt: ids, names, ops, devices; ids, sources and destinations."""
    ends = {graph.source.id: "_SOURCE", graph.sink.id: "_SINK"}
    names = {node.id: ends.get(node.id, node.name) for node in graph.nodes()}
    nodes = []
    for node in graph.nodes():
        op, device = ("NoOp", "") if node.id in ends else (node.op, node.assigned_device)
        nodes.append("\t".join(("N", str(node.id), names[node.id], op, device)))
    edges = [
        "\t".join(map(str, ("E", edge.id, names[edge.src.id], edge.src_output, names[edge.dst.id], edge.dst_input)))
        for edge in graph.edges()
    ]
    return nodes, edges


def without_ids(lines: list[str]) -> list[str]:
    """The edges without ids, sorted, for cases whose ids depend on hash order."""
    return sorted(line.split("\t", 2)[2] for line in lines)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.path)
def test_node_and_edge_ids(case: Case) -> None:
    """After import, feeds, fetches and pruning every node and edge has the id of TensorFlow."""
    for step in (step for step in case.steps() if step.is_new):
        expected = step.client_graph().splitlines()
        nodes, edges = listing(client_graph(case, step))
        expected_edges = [line for line in expected if line.startswith("E")]
        assert nodes == [line for line in expected if line.startswith("N")]
        if case.level == "L3":
            assert edges == expected_edges
        else:
            assert without_ids(edges) == without_ids(expected_edges)


def test_the_committed_families_are_all_there() -> None:
    """The sizes of the committed families."""
    committed = {"elementary": 23, "random": 6, "models": 5, "casts": 7, "gpu_partition": 31}
    assert {family: len(cases(family)) >= count for family, count in committed.items()} == dict.fromkeys(
        committed, True
    )
