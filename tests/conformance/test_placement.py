"""TensorFlow's placements are kept, and recovered without request where only one device fits.

In the graphs of the corpus every node names the device that TensorFlow's placer chose.
"""

from __future__ import annotations

import pytest

from partita.devices.placement.placer import place
from partita.graph.graph import Graph
from partita.graph.graphdef.importer import graph_def_to_graph
from tests.conformance.corpus import Case, cases

FAMILIES = (
    "elementary",
    "random",
    "models",
    "casts",
    "gpu_partition",
    "control_flow",
    "ops",
    "stateful",
    "tasks",
    "collectives",
)
CASES = [case for family in FAMILIES for case in cases(family)]
USERS = ("Assign", "Apply", "ReadVariableOp", "ResourceApply", "Scatter")
WITH_VARIABLES = [case for case in CASES if any(op.startswith(USERS) for op in case.ops)]


def requested(graph: Graph) -> dict[str, str]:
    """Requested device by node."""
    return {node.name: node.requested_device for node in graph.op_nodes()}


def assigned(graph: Graph) -> dict[str, str]:
    """Assigned device by node."""
    return {node.name: node.assigned_device for node in graph.op_nodes()}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.path)
def test_placing_a_placed_graph_changes_nothing(case: Case) -> None:
    """Every node stays on TensorFlow's device, with soft and hard placement."""
    for soft in (False, True):
        graph = graph_def_to_graph(case.graph_def(), add_default_attrs=True)
        place(graph, case.info["devices"], allow_soft_placement=soft)
        assert assigned(graph) == requested(graph)


@pytest.mark.parametrize("case", WITH_VARIABLES, ids=lambda case: case.path)
def test_what_uses_a_variable_needs_no_request(case: Case) -> None:
    """Ops with a reference or resource input are placed with their variable without a request."""
    graph_def = case.graph_def()
    for node in graph_def.node:
        if node.op.startswith(USERS):
            node.device = ""
    graph = graph_def_to_graph(graph_def, add_default_attrs=True)
    place(graph, case.info["devices"], allow_soft_placement=False)
    wanted = requested(graph_def_to_graph(case.graph_def()))
    assert assigned(graph) == wanted
