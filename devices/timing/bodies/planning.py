"""Plans the body of joined partitions: device, duty and cost of every node, and who waits for whom.

Costs are asked for once per distinct (kind of node, model of device, shapes of inputs and outputs), because a step of a
million nodes has a few hundred of these:

    n  op      inputs            kind  model  shapes        cost
    0  Neg     (2, 2)            0     0      0 -> 0        0
    1  MatMul  (2, 2), (2, 2)    1     0      0, 0 -> 0     1
    2  Neg     (2, 2)            0     0      0 -> 0        0      as that of node 0
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from ....graph.arrays import first_seen
from ....graph.dtypes import item_size
from ....graph.library.calls import calls_functions
from ....graph.ops.record import TRANSFERS, NodeClass
from ....graph.shape_inference.unknown_sizes import CallSite, check_sizes
from ...kernels.op_cost import is_on_host
from ..costs.source import CostRequest, CostSource, OpCost, UnknownCost, costs_of, unknown_cost
from ..hardware.engine import Duty
from ..tracing.measured import with_measured
from ..unmodelled import check_modelled
from .body import Body, sizes_of
from .dependencies import Edges, dependencies, edges_of, merges_after
from .places import HostMemory, hosts_of

if TYPE_CHECKING:
    from ....graph.analysis.joined import JoinedGraph
    from ....graph.arrays import Flags, Numbers
    from ....graph.shape_inference.infer import InferredShapes
    from ...cluster import Cluster
    from ...topology import Route
    from ..tracing.measured import MeasuredTimes

_FREE = OpCost(0, 0, 0, "free", 0, 0)


class Planner:
    """Plans bodies for one cluster and one source of costs."""

    def __init__(self, cluster: Cluster, cost_source: CostSource, times: MeasuredTimes | None = None) -> None:
        """`times` are measured, and take the place of those of the source."""
        self.cluster = cluster
        self._cost_source = cost_source
        self.times = times
        self._number_of = {name: number for number, name in enumerate(cluster.names)}
        self._host_of = hosts_of(cluster)
        self._specs = [device.spec for device in cluster]
        numbers: dict[int, int] = {}
        self._spec_of = np.array([numbers.setdefault(id(spec), len(numbers)) for spec in self._specs], np.int64)
        self._launches = np.array([spec.launches_kernels for spec in self._specs], np.bool_)

    def plan(
        self, shapes: InferredShapes, never: Collection[int] = (), prefix: str = "", called: CallSite | None = None
    ) -> Body:
        """The columns of joined partitions, which are a body if there are no loops, conditions and calls.

        Nodes of `never` do not run; calls cost nothing themselves. `prefix` comes before the names that measured times
        have; `called` is where a body is called from. Raises InvalidArgumentError for a device that the cluster does
        not have and for a size that a cost needs and nobody knows, and UnimplementedError for a node that runs and
        cannot be timed.
        """
        graph = shapes.graph
        runs = np.ones(len(graph), np.bool_)
        runs[list(never)] = False
        check_modelled(graph, runs)
        is_call = calls_in(graph)
        check_sizes(shapes, runs & ~is_call, called)
        device = self._devices(graph)
        memory = HostMemory(graph, device, self.cluster)
        is_transfer = graph.of_class(*TRANSFERS)
        priced_on = np.where(memory.is_host_node, self._host_of[device], device)
        costs, cost_of = self._costs(shapes, priced_on, np.flatnonzero(runs & ~is_transfer & ~is_call))
        routes = self._routes(graph, np.flatnonzero(runs & (graph.sender >= 0)))
        duty = _duties(graph, costs, cost_of, memory.is_host_node, self._launches[device])
        duty[list(routes)] = Duty.TRANSFER
        warnings = shapes.assumptions + _cost_warnings(graph, costs, cost_of)
        if self.times is not None:
            timed = runs & np.isin(duty, (Duty.COMPUTE, Duty.HOST))
            warnings += with_measured(graph, costs, cost_of, timed, self.times, prefix)
        on_stream = self._launches[device] & np.isin(duty, (Duty.FREE, Duty.COMPUTE)) & ~is_transfer & ~is_call
        edges = edges_of(graph, device, on_stream, memory)
        into_merges = merges_after(graph)
        waits, consumers, launch_consumers = dependencies(graph, edges, on_stream, into_merges)
        times = [cost.time_ns for cost in costs]
        return Body(
            graph=graph,
            shapes=shapes,
            device=device,
            duty=duty.astype(np.uint8),
            costs=costs,
            cost_of=cost_of,
            time_ns=[times[number] for number in cost_of.tolist()],
            routes=routes,
            copied_bytes=_copied_bytes(shapes, np.array(list(routes), np.int64)),
            waits=waits,
            consumers=consumers,
            launch_consumers=launch_consumers,
            on_stream=bytearray(on_stream),
            into_merges=into_merges,
            warnings=warnings,
        )

    def edges(self, body: Body) -> Edges:
        """The edges of the graph of a body."""
        on_stream = np.frombuffer(body.on_stream, np.bool_)
        return edges_of(body.graph, body.device, on_stream, HostMemory(body.graph, body.device, self.cluster))

    def _devices(self, graph: JoinedGraph) -> Numbers:
        """By node the number of its device in the cluster."""
        known, find = self._number_of, self.cluster.find
        numbers = [known[name] if name in known else known[find(name).name] for name in graph.devices]
        return np.array(numbers, np.int64)[graph.device_of]

    def _costs(self, shapes: InferredShapes, device: Numbers, nodes: Numbers) -> tuple[list[OpCost], Numbers]:
        """The distinct costs, and by node the number of its cost; number 0 is that of all but `nodes`."""
        graph = shapes.graph
        seen = first_seen(shapes.case_of[nodes] * np.int64(len(self._specs)) + self._spec_of[device[nodes]])
        asked = nodes[seen.first].tolist()
        batch = self._requests(shapes, device, asked)
        try:
            costs = [_FREE, *costs_of(self._cost_source, batch)]
        except UnknownCost:
            raise unknown_cost(self._cost_source, batch, [graph.names[n] for n in asked]) from None
        cost_of = np.zeros(len(graph), np.int64)
        cost_of[nodes] = seen.number + 1
        return costs, cost_of

    def requests(self, shapes: InferredShapes, nodes: Sequence[int]) -> list[CostRequest]:
        """What the source of costs is asked about nodes that compute; their sizes are known.

        Raises InvalidArgumentError for a device that the cluster does not have.
        """
        graph, device = shapes.graph, self._devices(shapes.graph)
        on_host = HostMemory(graph, device, self.cluster).is_host_node
        return self._requests(shapes, np.where(on_host, self._host_of[device], device), nodes)

    def _requests(self, shapes: InferredShapes, device: Numbers, nodes: Sequence[int]) -> list[CostRequest]:
        batch = []
        for n in nodes:
            case = int(shapes.case_of[n])
            inputs, outputs = sizes_of(shapes.read(case)), sizes_of(shapes.written(case))
            batch.append(CostRequest(shapes.graph.properties[n], inputs, outputs, self._specs[device[n]]))
        return batch

    def _routes(self, graph: JoinedGraph, receives: Numbers) -> dict[int, Route]:
        """The route of every receive whose tensor crosses links."""
        route, find = self.cluster.topology.route, self.cluster.find
        ends = [(find(r.send_device).name, find(r.recv_device).name) for r in graph.transfers.routes]
        src_on_host = graph.of_class(NodeClass.HOST_SEND)[graph.sender[receives]]
        dst_on_host = graph.of_class(NodeClass.HOST_RECV)[receives]
        columns = (receives, graph.transfers.route_of[receives], src_on_host, dst_on_host)
        routes = {
            n: route(*ends[number], src_on_host=from_host, dst_on_host=to_host)
            for n, number, from_host, to_host in zip(*(column.tolist() for column in columns), strict=True)
        }
        return {n: found for n, found in routes.items() if found.links}


def _copied_bytes(shapes: InferredShapes, receives: Numbers) -> dict[int, int]:
    """The bytes of the tensor of each receive."""
    case = shapes.case_of[receives]
    of_case: dict[int, int] = {}
    for number, kind in dict(zip(case.tolist(), shapes.graph.kind_of[receives].tolist(), strict=True)).items():
        dims = sizes_of(shapes.written(number))[0]
        of_case[number] = prod(dims) * item_size(shapes.graph.kinds[kind].output_types[0])
    return dict(zip(receives.tolist(), map(of_case.__getitem__, case.tolist()), strict=True))


def _duties(graph: JoinedGraph, costs: list[OpCost], cost_of: Numbers, is_host_node: Flags, launches: Flags) -> Numbers:
    """`launches` says by node whether its device launches kernels: a CPU does itself what is done on the host."""
    takes_time = ~np.array([cost.provenance == "free" for cost in costs], np.bool_)[cost_of]
    waits = np.array([kind.op_def.record.waits for kind in graph.kinds], np.bool_)[graph.kind_of]
    passes = np.array([is_on_host(op) for op in graph.ops], np.bool_)[graph.kind_of]
    duty = np.where(waits, Duty.WAIT, np.where(launches & (is_host_node | passes), Duty.HOST, Duty.COMPUTE))
    return np.where(takes_time, duty, Duty.FREE)


def calls_in(graph: JoinedGraph) -> Flags:
    """By node whether it calls functions."""
    libraries = [library for library in graph.functions if library]
    is_call = [
        kind.op_def.record.calls is not None or any(calls_functions(kind, library) for library in libraries)
        for kind in graph.kinds
    ]
    return np.array(is_call, np.bool_)[graph.kind_of]


def _cost_warnings(graph: JoinedGraph, costs: list[OpCost], cost_of: Numbers) -> list[str]:
    is_guess = np.array([cost.provenance == "guessed" for cost in costs], np.bool_)[cost_of]
    guessed = Counter(graph.op(n) for n in np.flatnonzero(is_guess).tolist())
    listed = ", ".join(f"{count} x {op}" for op, count in sorted(guessed.items()))
    if not guessed:
        return []
    return [f"guessed to cost one operation per output element, as no cost is stated or shapes do not fit it: {listed}"]
