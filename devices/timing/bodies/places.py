"""Which nodes of a body compute on the host of their device, and which tensors are in host memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ....graph.ops.device_kinds import device_kind
from ....graph.ops.memory_types import memory_types
from ....graph.port_table import PortTable

if TYPE_CHECKING:
    from ....graph.analysis.joined import JoinedGraph
    from ....graph.arrays import Flags, Integers, Numbers
    from ...cluster import Cluster


def hosts_of(cluster: Cluster) -> Numbers:
    """By device the number of the device that computes for it on its host: the first of its task without own memory.

    A device is its own host where the task has no other.
    """
    hosts: dict[str, int] = {}
    for number, device in enumerate(cluster):
        if not device_kind(device.type).own_memory:
            hosts.setdefault(device.task_name, number)
    return np.array([hosts.get(device.task_name, number) for number, device in enumerate(cluster)], np.int64)


class HostMemory:
    """What nodes on devices with memory of their own have in host memory.

    `is_host_node` says by node whether all that it reads and writes is there, so that no kernel is launched for it.
    """

    def __init__(self, graph: JoinedGraph, device: Numbers, cluster: Cluster) -> None:
        types = {d.type for d in cluster if device_kind(d.type).own_memory}
        type_of = [d.type for d in cluster]
        self._outputs: list[tuple[Flags, PortTable]] = []  # nodes of one type of device, and their ports on the host
        self._kind_of = graph.kind_of
        self.is_host_node = np.zeros(len(graph), np.bool_)
        for own in sorted(types):
            chosen = np.array([name == own for name in type_of], np.bool_)[device]
            if chosen.any():
                ports = [memory_types(kind, own) for kind in graph.kinds]
                on_host = [bool(outputs) and all(inputs) and all(outputs) for inputs, outputs in ports]
                self.is_host_node |= chosen & np.array(on_host, np.bool_)[graph.kind_of]
                self._outputs.append((chosen, PortTable([outputs for _, outputs in ports])))

    def has_output(self, node: Integers, output: Integers) -> Flags:
        """Whether output `output[k]` of node `node[k]`, on a device with own memory, is in host memory."""
        on_host = np.zeros(len(node), np.bool_)
        for chosen, ports in self._outputs:
            on_host |= chosen[node] & (ports.at(self._kind_of[node].astype(np.int64), output) != 0)
        return on_host
