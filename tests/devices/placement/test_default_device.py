"""Placement of function bodies: a device that ranks first, and devices that were assigned before."""

from __future__ import annotations

from partita.devices.placement.placer import place
from partita.graph.builder import GraphBuilder
from tests.devices.placement.test_placement import CPUS, GPUS
from tests.goldens import assert_text


def test_the_default_device_is_the_best_of_those_that_fit() -> None:
    """It ranks before faster kinds, but a request, a missing kernel or a group overrides it."""
    b = GraphBuilder()
    x = b.op("Placeholder", name="x", dtype="float32", shape=())[0]
    free = b.op("Neg", x, name="free")[0]
    asked = b.op("Neg", x, name="asked", device=CPUS[2])
    b.op("Tanh", free, name="follows", attrs={"_class": [f"loc:@{asked.name}".encode()]})
    b.op("Tanh", free, name="kind", device="/gpu:*")
    graph = b.graph()
    place(graph, [*CPUS, *GPUS], default_device=CPUS[1])
    assert_text(
        graph,
        """
        5 nodes @/job:localhost/replica:0/task:0/...
        x: float = Placeholder() {shape=[]} @CPU:1
        free: float = Neg(x) @CPU:1
        asked: float = Neg(x) @CPU:2
        follows: float = Tanh(free) {_class=["loc:@asked"]} @CPU:2
        kind: float = Tanh(free) @GPU:0
        """,
    )


def test_settled_devices_stay_settled_when_requests_conflict() -> None:
    """With soft placement a conflict of ids is dropped, unless an assigned device sets the id."""
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
    assert_text(
        graph,
        """
        4 nodes @/job:localhost/replica:0/task:0/device:CPU:2
        v: resource = VarHandleOp() {dtype=DT_FLOAT, shape=[]}
        copy0: resource = Identity(v)
        copy1: resource = Identity(v)
        read: float = ReadVariableOp(copy0) {_class=["loc:@copy1"]}
        """,
    )
