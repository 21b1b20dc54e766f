"""Where parameters are put: graphs before and after, and values that stay."""

from __future__ import annotations

from collections import Counter

import numpy as np

from partita.graph import DataType, Graph, graph_def_to_graph
from partita.graph.builder.builder import GraphBuilder
from partita.scenarios.scaling.placements import by_host, keep, spread


def device(task: int, name: str) -> str:
    """A full name."""
    return f"/job:localhost/replica:0/task:{task}/device:{name}"


CPUS = [device(task, "CPU:0") for task in (0, 1)]
GPUS = [device(task, f"GPU:{k}") for task in (0, 1) for k in (0, 1)]


def server() -> Graph:
    """Two variables on the first CPU, read on four GPUs, and the sums of what these make of them."""
    b = GraphBuilder()
    with b.device(CPUS[0]):
        b.constant(np.float32(0.1), name="rate")
    for name, size in (("large", 6), ("small", 2)):
        with b.device(CPUS[0]):
            handle = b.op("VarHandleOp", name=name, dtype=DataType.FLOAT, shape=(size,), attrs={"shared_name": name})
            read = b.op("ReadVariableOp", handle, name=f"{name}/read", dtype=DataType.FLOAT)[0]
        parts = []
        for k, gpu in enumerate(GPUS):
            with b.device(gpu):
                parts.append(b.op("Neg", read, name=f"{name}/part{k}")[0])
        with b.device(CPUS[0]):
            total = b.op("AddN", parts, name=f"{name}/total")[0]
            b.op("ResourceApplyGradientDescent", handle, np.float32(1), total, name=f"{name}/update")
    return graph_def_to_graph(b.graph_def())


def devices(graph: Graph) -> dict[str, str]:
    """Requested device by node."""
    return {node.name: node.requested_device for node in graph.op_nodes()}


def crossings(graph: Graph) -> int:
    """Tensors that go to another host, once for each device there that reads them."""
    pairs = {
        (edge.src.name, edge.src_output, edge.dst.requested_device)
        for node in graph.op_nodes()
        for edge in node.out_edges()
        if edge.dst.is_op and edge.dst.requested_device.split("/device")[0] != node.requested_device.split("/device")[0]
    }
    return len(pairs)


def test_variables_are_spread_with_what_belongs_to_them() -> None:
    """The largest first, each to the device with the fewest bytes; constants stay."""
    graph = server()
    before = devices(graph)
    spread(graph, CPUS[0], CPUS)
    after = devices(graph)
    moved = {name for name in before if after[name] != before[name]}
    assert {"small", "small/read", "small/total", "small/update"} <= moved
    assert not any(name.startswith("large") for name in moved)
    assert after["rate"] == CPUS[0]
    assert {after[f"small/part{k}"] for k in range(4)} == set(GPUS)


def test_hosts_are_told_once() -> None:
    """A variable goes to another host once, and its GPUs send one sum back, of four terms in all."""
    graph = server()
    assert crossings(graph) == 8  # each variable to two GPUs of the other host, and two terms of each back
    by_host(graph, CPUS)
    assert crossings(graph) == 4
    sums = Counter(node.num_inputs for node in graph.op_nodes() if node.op == "AddN")
    assert sums == {2: 6}  # on both hosts and of both hosts, for each variable


def test_a_host_of_its_own_is_left_alone() -> None:
    """Where nothing crosses, nothing is added."""
    graph = server()
    for node in graph.op_nodes():
        graph.request_device(node.id, node.requested_device.replace("task:1", "task:0"))
    before = devices(graph)
    by_host(graph, CPUS)
    assert devices(graph) == before


def test_kept_values_are_read_from_a_variable() -> None:
    """A placeholder of floats becomes a variable on its device, whose rows stay unknown; one of int32 is still fed."""
    b = GraphBuilder()
    with b.device(GPUS[0]):
        x, labels = b.placeholder("x", "float32", (None, 2)), b.placeholder("labels", "int32", (None,))
        b.op("Neg", x, name="y")
        b.op("Neg", labels, name="z")
    graph = graph_def_to_graph(b.graph_def())
    kept, fed = keep(graph)
    assert (kept, fed) == ({"x/read": (2,)}, {"labels": ()})
    ops = {node.name: (node.op, node.requested_device) for node in graph.op_nodes()}
    assert "x" not in ops
    assert ops["x/kept"] == ("VarHandleOp", GPUS[0])
    assert ops["x/read"] == ("ReadVariableOp", GPUS[0])
    (y,) = (node for node in graph.op_nodes() if node.name == "y")
    assert y.input_edge(0).src.name == "x/read"
