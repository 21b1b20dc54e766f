"""A graph cut by device as virtual steps run it: an interpretation of each partition, and what hardware its nodes need.

Nodes of a partition have the numbers of its `Interpretation`. Rows have the joint numbers that a simulation of the same
partitions uses: those of the first partition in the order of their ids in the graph, then those of the second, ...

    partition    CPU:0                    CPU:1
    node         0 x   1 x/send           0 x/recv   1 y
    joint        0     1                  2          3

Consumers and roots stand in the order of joint numbers, as in a simulation: then simultaneous events have its order.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ....devices.kernels.op_cost import is_free, is_on_host, waits_ns
from ....devices.state import Variable
from ....devices.timing.bodies.places import HostMemory, hosts_of
from ....devices.timing.costs.source import CostRequest, OpCost, UnknownCost, context, cost_of, unknown_cost
from ....devices.timing.hardware.engine import Duty
from ....graph.analysis.joined import JoinedGraph
from ....graph.arrays import owners
from ....graph.dtypes import item_size
from ....graph.library.calls import calls_functions
from ....graph.ops.record import TRANSFERS, NodeClass
from ..interpretation import Interpretation

if TYPE_CHECKING:
    from ....devices.cluster import Cluster
    from ....devices.timing.costs.source import CostSource
    from ....devices.topology import Route
    from ....graph.arrays import Flags
    from ....graph.graph import Graph
    from ...plans.binding import Binder

Dims = tuple[int, ...]
FREE = OpCost(0, 0, 0, "free", 0, 0)


class VirtualBody:
    """What a request or a function runs on simulated hardware.

    By joint number: `device`, its number in the cluster; `duty`, what its hardware does unless the node is free;
    `is_free`, whether its op takes no time; `on_stream`, whether its values follow the kernels of a GPU. `late_inputs`
    are the inputs (joint number, port) that such a value reaches only when its kernel has ended. `deferred` are the
    nodes whose kernels only begin something.
    """

    def __init__(self, graphs: Mapping[str, Graph], binders: Mapping[str, Binder], cluster: Cluster) -> None:
        """Binds every node to a kernel; the binders note ops without one. Raises as `JoinedGraph` and `Topology`."""
        self.cluster = cluster
        self.graph = JoinedGraph(graphs)
        self.parts = [Interpretation(graph, binders) for graph in graphs.values()]
        self.joint = self._joint_numbers()
        number_of = {name: number for number, name in enumerate(cluster.names)}
        device = np.array([number_of[cluster.find(name).name] for name in self.graph.devices], np.int64)
        device = device[self.graph.device_of]
        self.memory = memory = HostMemory(self.graph, device, cluster)
        self.device: list[int] = device.tolist()
        self._priced_on = np.where(memory.is_host_node, hosts_of(cluster)[device], device).tolist()
        self.deferred = {
            joint[node] for part, joint in zip(self.parts, self.joint, strict=True) for node in part.deferred
        }
        waits = np.array([kind.op_def.record.waits for kind in self.graph.kinds], np.bool_)[self.graph.kind_of]
        waits[[n for n in self.deferred if not self.calls_functions(n)]] = True
        free = np.array([is_free(op) for op in self.graph.ops], np.bool_)[self.graph.kind_of]
        passes = np.array([is_on_host(op) for op in self.graph.ops], np.bool_)[self.graph.kind_of]
        launches = np.array([d.spec.launches_kernels for d in cluster], np.bool_)[device]
        is_host = launches & (memory.is_host_node | passes)
        duty = np.where(waits, Duty.WAIT, np.where(is_host, Duty.HOST, Duty.COMPUTE))
        self.is_free: list[bool] = free.tolist()
        self.duty = [Duty(number) for number in duty.tolist()]
        on_stream = launches & (free | (duty == Duty.COMPUTE)) & ~self.graph.of_class(*TRANSFERS)
        self.on_stream: list[bool] = on_stream.tolist()
        self.late_inputs = self._late_inputs(on_stream, memory) if on_stream.any() else set()
        self.routes = self._routes()
        self._sort()

    def __len__(self) -> int:
        return len(self.device)

    def price(self, number: int, inputs: list[Any], outputs: list[Any], source: CostSource) -> OpCost:
        """The cost of one run of a node on its inputs and outputs, by joint number."""
        request = CostRequest(
            self.graph.properties[number],
            tuple(map(dims_of, inputs)),
            tuple(map(dims_of, outputs)),
            self.cluster.devices[self._priced_on[number]].spec,
        )
        try:
            return cost_of(source, request)
        except UnknownCost:
            raise unknown_cost(source, [request], [self.graph.names[number]]) from None

    def waits_ns(self, number: int, inputs: list[Any], outputs: list[Any]) -> int:
        """The part of the cost of a node that it only waits for."""
        shapes = tuple(map(dims_of, inputs)), tuple(map(dims_of, outputs))
        return waits_ns(context(self.graph.properties[number], *shapes))

    def is_late(self, number: int, port: int) -> bool:
        """Whether an input from a stream waits for the end of the kernel; a control input has port -1."""
        return (number, port) in self.late_inputs if port >= 0 else not self.on_stream[number]

    def calls_functions(self, number: int) -> bool:
        """Whether a node calls functions: then it takes no time of its own."""
        graph = self.graph  # the library of a partition has only the functions that its own nodes call
        return calls_functions(graph.properties[number], graph.functions[int(graph.place[number])])

    def bytes_of(self, number: int, value: Any) -> int:
        """The bytes that a receive gets."""
        return prod(dims_of(value)) * item_size(self.graph.properties[number].output_types[0])

    def _joint_numbers(self) -> list[list[int]]:
        """By partition and node the joint number."""
        joint, first = [], 0
        for part in self.parts:
            rank = {node_id: number for number, node_id in enumerate(sorted(part.ids), first)}
            joint.append([rank[node_id] for node_id in part.ids])
            first += len(rank)
        return joint

    def _late_inputs(self, on_stream: Flags, memory: HostMemory) -> set[tuple[int, int]]:
        graph = self.graph
        dst = owners(np.diff(graph.input_start))
        port = np.arange(len(dst)) - graph.input_start[dst]
        stays = on_stream[dst] & ~graph.of_class(NodeClass.MERGE)[dst]
        stays &= ~memory.has_output(graph.input_src, graph.input_output)
        late = np.flatnonzero(on_stream[graph.input_src] & ~stays)
        return set(zip(dst[late].tolist(), port[late].tolist(), strict=True))

    def _routes(self) -> dict[int, Route]:
        """The route of every receive whose tensor crosses links."""
        graph, find, route = self.graph, self.cluster.find, self.cluster.topology.route
        routes = {}
        for n in np.flatnonzero(graph.sender >= 0).tolist():
            ends = graph.transfers.routes[graph.transfers.route_of[n]]
            routes[n] = route(
                find(ends.send_device).name,
                find(ends.recv_device).name,
                src_on_host=graph.node_class(int(graph.sender[n])) is NodeClass.HOST_SEND,
                dst_on_host=graph.node_class(n) is NodeClass.HOST_RECV,
            )
        return {n: route for n, route in routes.items() if route.links}

    def _sort(self) -> None:
        merges: list[bool] = self.graph.of_class(NodeClass.MERGE).tolist()
        for part, joint in zip(self.parts, self.joint, strict=True):

            def place(edge: tuple[int, int, int], joint: list[int] = joint) -> tuple[bool, bool, bool, int, int]:
                node, port, _ = edge
                number, is_control = joint[node], port < 0
                return self.is_late(number, port), merges[number] and not is_control, is_control, number, port

            for consumers in part.consumers:
                consumers.sort(key=place)
            part.roots.sort(key=joint.__getitem__)


def dims_of(value: Any) -> Dims:  # Any: a tensor of any type, or a variable
    """The shape of a tensor; of a variable without a value the declared one, where a size that it leaves open is 1."""
    if isinstance(value, Variable):
        if value.value is None:
            return tuple(size or 1 for size in value.shape or ())
        value = value.value
    return tuple(np.shape(value))
