"""Graphs of many nodes, and loops of many iterations, for tests of costs that grow with them."""

from __future__ import annotations

from random import Random
from typing import Any

from partita.graph import GraphBuilder, GraphDef
from partita.graph.ops.registry import PRODUCER
from partita.graph.protos.types_pb2 import DT_FLOAT

FRAME: dict[str, Any] = {"frame_name": "while", "parallel_iterations": 10}  # Any: attr values of several types


def device_name(index: int) -> str:
    """Full name of a CPU of the local task."""
    return f"/job:localhost/replica:0/task:0/device:CPU:{index}"


def many_nodes(count: int, *, devices: int = 1) -> bytes:
    """A serialised graph: placeholder "x", then binary ops, each on two of the last 50 values, on drawn devices."""
    draw, graph, names = Random(0), GraphDef(), ["x"]
    graph.versions.producer = PRODUCER
    graph.node.add(name="x", op="Placeholder", device=device_name(0)).attr["dtype"].type = DT_FLOAT
    for index in range(count):
        inputs = [draw.choice(names[-50:]), draw.choice(names[-50:])]
        op, device = draw.choice(("AddV2", "Mul", "Sub", "Maximum")), device_name(draw.randrange(devices))
        node = graph.node.add(name=f"scope{index % 17}/n{index}", op=op, input=inputs, device=device)
        node.attr["T"].type = DT_FLOAT
        names.append(node.name)
    return graph.SerializeToString(deterministic=True)


def counted_loop(iterations: int) -> GraphDef:
    """Adds the fed "x:0" to itself so many times, "sum:0"; the counter is on the first CPU, the sum on the second."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (), device=device_name(1))
    with b.device(device_name(0)):
        limit = b.op("Enter", b.constant(iterations, "int32"), is_constant=True, **FRAME)[0]
        counted = b.op("Merge", [b.op("Enter", b.constant(0, "int32"), **FRAME)[0], b.later("int32")])
        go_on = b.op("LoopCond", b.op("Less", counted[0], limit))[0]
        count = b.identity(b.op("Switch", counted[0], go_on)[1])
        following = b.op("AddV2", count, b.constant(1, "int32", control=[count.node]))
        b.close_loop(counted, b.op("NextIteration", following)[0])
    with b.device(device_name(1)):
        term = b.op("Enter", x, is_constant=True, **FRAME)[0]
        summed = b.op("Merge", [b.op("Enter", x, **FRAME)[0], b.later("float32")])
        switch = b.op("Switch", summed[0], go_on)
        b.close_loop(summed, b.op("NextIteration", b.op("AddV2", b.identity(switch[1]), term))[0])
        b.op("Exit", switch[0], name="sum")
    return b.graph_def()
