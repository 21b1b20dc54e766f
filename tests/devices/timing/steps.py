"""Small partitioned steps on hardware with round numbers, so that times can be computed by hand.

By default a device does 1 operation and moves 1 byte per nanosecond, a link carries 1 byte per nanosecond, and overhead
and latency are 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from partita.devices import Cluster, Device, DeviceSpec
from partita.devices.link import LinkSpec
from partita.devices.timing import Timeline, simulate
from partita.devices.topology import LinkRules
from partita.graph import DataType, Graph, GraphDef, graph_def_to_graph, split_graph

GIGA = 10**9


def spec(*, flops: int = GIGA, memory: int = GIGA, overhead_ns: int = 0, kind: str = "CPU") -> DeviceSpec:
    """A device with one rate for all types; rates per second."""
    return DeviceSpec("test", kind, {"fp32": flops}, memory, 10**12, overhead_ns)


def cluster(
    count: int = 2,
    *,
    speed: int = 1,
    link_speed: int = 1,
    latency_ns: int = 0,
    overhead_ns: int = 0,
    memory: int | None = None,
) -> Cluster:
    """CPUs, a link between any two; `speed` multiplies compute and memory rates, `link_speed` the rates of links."""
    device = spec(flops=speed * GIGA, memory=memory or speed * GIGA, overhead_ns=overhead_ns)
    link = LinkSpec("wire", link_speed * GIGA, latency_ns)
    pairs = {(cpu(i), cpu(j)): link for i, j in combinations(range(count), 2)}  # else they share the memory of a task
    return Cluster([Device(device, i) for i in range(count)], LinkRules(pairs=pairs))


def cpu(index: int) -> str:
    """Full name of a CPU of the test cluster."""
    return f"/job:localhost/replica:0/task:0/device:CPU:{index}"


class StepBuilder:
    """Writes a placed graph node by node; every tensor is a float32 matrix."""

    def __init__(self) -> None:
        self.graph = Graph()

    def feed(self, name: str, shape: tuple[int | None, ...] | None, device: int = 0) -> str:
        """Adds a placeholder; None is an unknown shape."""
        return self._add(name, "Placeholder", {"dtype": DataType.FLOAT, "shape": shape}, [], device)

    def const(self, name: str, value: object, device: int = 0) -> str:
        """Adds a constant; int32 for integers."""
        array = np.asarray(value)
        array = array.astype(np.int32 if array.dtype.kind == "i" else np.float32 if array.dtype.kind == "f" else bool)
        types = {"i": DataType.INT32, "f": DataType.FLOAT, "b": DataType.BOOL}
        return self._add(name, "Const", {"dtype": types[array.dtype.kind], "value": array}, [], device)

    def op(self, name: str, op: str, inputs: Sequence[str], device: int = 0, **attrs: object) -> str:
        """Adds an op of one float type; an input is "node" or "node:port"."""
        return self._add(name, op, {"T": DataType.FLOAT, **attrs}, inputs, device)

    def _add(self, name: str, op: str, attrs: Mapping[str, object], inputs: Sequence[str], device: int) -> str:
        node = self.graph.add_node(name, op, attrs)
        node.assigned_device = cpu(device)
        for port, text in enumerate(inputs):
            source, _, output = text.partition(":")
            producer = self.graph.find_node(source)
            assert producer is not None
            self.graph.add_edge(producer, int(output or 0), node, port)
        return name

    def after(self, node: str, *before: str) -> None:
        """Adds control edges."""
        for name in before:
            src, dst = self.graph.find_node(name), self.graph.find_node(node)
            assert src is not None
            assert dst is not None
            self.graph.add_control_edge(src, dst)

    def parts(self) -> dict[str, Graph]:
        """The partitions, by device."""
        return split_graph(self.graph)

    def timeline(self, hardware: Cluster | None = None) -> Timeline:
        """The simulated step."""
        return simulate(self.parts(), hardware or cluster(4))


def placed_parts(graph_def: GraphDef) -> dict[str, Graph]:
    """Partitions of a GraphDef whose nodes all say where they run."""
    graph = graph_def_to_graph(graph_def, add_default_attrs=True, expect_device=True)
    return split_graph(graph)
