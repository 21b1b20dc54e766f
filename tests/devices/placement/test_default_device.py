"""What the bodies of functions ask of placement: a device before all others, and devices that are settled."""

from __future__ import annotations

from partita.devices.placement.placer import place
from partita.graph.builder import GraphBuilder
from tests.devices.placement.test_placement import CPUS, GPUS


def test_the_default_device_is_the_best_of_those_that_fit() -> None:
    """It stands before faster kinds; a request, a kernel and a group of nodes stand before it."""
    b = GraphBuilder()
    x = b.op("Placeholder", name="x", dtype="float32", shape=())[0]
    free = b.op("Neg", x, name="free")[0]
    asked = b.op("Neg", x, name="asked", device=CPUS[2])
    b.op("Tanh", free, name="follows", attrs={"_class": [f"loc:@{asked.name}".encode()]})
    b.op("Tanh", free, name="kind", device="/gpu:*")
    graph = b.graph()
    place(graph, [*CPUS, *GPUS], default_device=CPUS[1])
    device = {node.name: node.assigned_device for node in graph.op_nodes()}
    assert (device["free"], device["asked"], device["follows"]) == (CPUS[1], CPUS[2], CPUS[2])
    assert device["kind"] == GPUS[0]


def test_settled_devices_stay_settled_when_requests_conflict() -> None:
    """With soft placement a conflict of ids is forgotten, but not where what is assigned stands."""
    b = GraphBuilder()
    handle = b.op("VarHandleOp", name="v", dtype="float32", shape=(), device=CPUS[2])[0]
    copies = [b.op("Identity", handle, name=f"copy{k}", device=CPUS[k]) for k in range(2)]
    b.op("ReadVariableOp", copies[0][0], name="read", dtype="float32", attrs={"_class": [b"loc:@copy1"]})
    graph = b.graph()
    assigned = graph.assigned_device_indices()
    (v,) = [node for node in graph.op_nodes() if node.name == "v"]
    assigned[v.id] = graph.intern_device(CPUS[2])
    graph.assign_devices(assigned)
    place(graph, CPUS, default_device=CPUS[0])
    assert {node.assigned_device for node in graph.op_nodes()} == {CPUS[2]}
