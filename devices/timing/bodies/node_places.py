"""Where the nodes of a graph run and what they need of the hardware there, as far as no cost decides it.

Bodies that are priced before they run and bodies of sessions, which are priced when their nodes have run, ask the same
questions here:

    node        x (fed)   a   a/send   a/recv   b        a on GPU:0, b on CPU:0
    device      1         1   1        0        0
    duty        COMPUTE for all, HOST and WAIT where the op, or its memory, says so; FREE where nothing takes time
    on stream   yes       yes no       no       no
    route                              GPU:0 -> CPU:0
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ....graph.library.calls import calls_functions
from ....graph.ops.record import TRANSFERS, NodeClass
from ...kernels.op_cost import is_on_host
from ..collectives.seats import seated
from ..hardware.engine import Duty
from .places import HostMemory, device_columns

if TYPE_CHECKING:
    from ....graph.analysis.joined import JoinedGraph
    from ....graph.arrays import Flags, Numbers
    from ...cluster import Cluster
    from ...topology import Route


class RouteEnds(NamedTuple):
    """The two devices of a transfer, and whether it begins and ends in the memory of their hosts."""

    src: str
    dst: str
    src_on_host: bool
    dst_on_host: bool

    def route(self, cluster: Cluster) -> Route:
        """The links between them."""
        return cluster.topology.route(self.src, self.dst, src_on_host=self.src_on_host, dst_on_host=self.dst_on_host)


class NodePlaces:
    """By joint number of a graph: `device`, a number in the cluster; `priced_on`, the device whose model prices it.

    `memory` says what is in host memory, `is_call` which nodes call functions, `is_transfer` which send or receive.
    """

    def __init__(self, graph: JoinedGraph, cluster: Cluster) -> None:
        """Raises InvalidArgumentError for a device that the cluster does not have."""
        self.graph = graph
        self.cluster = cluster
        number_of, find = cluster.numbers, cluster.find
        numbers = [number_of[name] if name in number_of else number_of[find(name).name] for name in graph.devices]
        self.device: Numbers = np.array(numbers, np.int64)[graph.device_of]
        self.memory = HostMemory(graph, self.device, cluster)
        self.is_transfer: Flags = graph.of_class(*TRANSFERS)
        self.ways: dict[RouteEnds, Route] = {}
        """the routes that `routes` has found, by their ends"""

    @cached_property
    def is_call(self) -> Flags:
        """By node whether it calls functions: then it takes no time of its own."""
        return calls_in(self.graph)

    @cached_property
    def priced_on(self) -> Numbers:
        """By node the device whose model prices it: the host of a GPU for what only touches host memory."""
        if not self.memory.is_host_node.any():
            return self.device
        return np.where(self.memory.is_host_node, device_columns(self.cluster).host[self.device], self.device)

    @cached_property
    def _launches(self) -> Flags:
        """By node whether its device launches kernels."""
        return device_columns(self.cluster).launches[self.device]

    def duties(self, is_free: Flags) -> Numbers:
        """By node what the hardware does for it, FREE where it takes no time; transfers are left out.

        A CPU does itself what is done on the host of a GPU.
        """
        graph = self.graph
        waits = np.array([kind.op_def.record.waits for kind in graph.kinds], np.bool_)[graph.kind_of]
        passes = np.array([is_on_host(op) for op in graph.ops], np.bool_)[graph.kind_of]
        is_host = self._launches & (self.memory.is_host_node | passes)
        duty = np.where(waits, Duty.WAIT, np.where(is_host, Duty.HOST, Duty.COMPUTE))
        duty = np.where(is_free, Duty.FREE, duty)
        duty[seated(graph)] = Duty.COLLECTIVE
        return duty

    def on_stream(self, duty: Numbers) -> Flags:
        """By node whether its values follow the kernels of a GPU: kernels, and what only passes on their values."""
        if not self._launches.any():
            return np.zeros(len(duty), np.bool_)
        follows: Flags = (duty == Duty.FREE) | (duty == Duty.COMPUTE)
        return self._launches & follows & ~self.is_transfer & ~self.is_call

    def routes(self, receives: Numbers) -> dict[int, Route]:
        """The route of every receive whose tensor crosses links."""
        if not len(receives):
            return {}
        graph, find = self.graph, self.cluster.find
        src_on_host = graph.of_class(NodeClass.HOST_SEND)[graph.sender[receives]]
        dst_on_host = graph.of_class(NodeClass.HOST_RECV)[receives]
        ways: list[int] = (4 * graph.transfers.route_of[receives] + 2 * src_on_host + dst_on_host).tolist()
        ends = [(find(r.send_device).name, find(r.recv_device).name) for r in graph.transfers.routes]
        routes = {}
        for way in dict.fromkeys(ways):  # of which a million receives have a few hundred
            between, hosts = divmod(way, 4)
            way_ends = RouteEnds(*ends[between], hosts >= 2, hosts % 2 == 1)
            route = way_ends.route(self.cluster)
            if route.links:
                routes[way] = self.ways[way_ends] = route
        return {n: routes[way] for n, way in zip(receives.tolist(), ways, strict=True) if way in routes}


def calls_in(graph: JoinedGraph) -> Flags:
    """By node whether it calls functions."""
    libraries = [library for library in graph.functions if library]
    is_call = [
        kind.op_def.record.calls is not None or any(calls_functions(kind, library) for library in libraries)
        for kind in graph.kinds
    ]
    return np.array(is_call, np.bool_)[graph.kind_of]
