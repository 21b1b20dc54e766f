"""Which nodes of a body compute on the host of their device, and which tensors are in host memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from ....graph.ops.device_kinds import device_kind
from ....graph.ops.memory_types import memory_types
from ....graph.port_table import PortTable
from ...cluster import Cluster

if TYPE_CHECKING:
    from ....graph.analysis.joined import JoinedGraph
    from ....graph.arrays import Flags, Integers, Numbers


class DeviceColumns(NamedTuple):
    """By device of a cluster: the number of its host, and whether it launches kernels; and by type of device with
    memory of its own which devices are of that type.
    """

    host: Numbers
    launches: Flags
    own: dict[str, Flags]


_COLUMNS: WeakKeyDictionary[Cluster, DeviceColumns] = WeakKeyDictionary()
"""every body asks for these, and a cluster may have thousands of devices"""


def device_columns(cluster: Cluster) -> DeviceColumns:
    """The columns of a cluster; not to be changed."""
    columns = _COLUMNS.get(cluster)
    if columns is None:
        types = np.array([device.type for device in cluster])
        columns = _COLUMNS[cluster] = DeviceColumns(
            hosts_of(cluster),
            np.array([device.spec.launches_kernels for device in cluster], np.bool_),
            {name: types == name for name in sorted({*types.tolist()}) if device_kind(name).own_memory},
        )
    return columns


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
        self._outputs: list[tuple[Flags, PortTable]] = []  # nodes of one type of device, and their ports on the host
        self._kind_of = graph.kind_of
        self.is_host_node = np.zeros(len(graph), np.bool_)
        for own, is_own in device_columns(cluster).own.items():
            chosen = is_own[device]
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
