"""The devices of the replicas: each device of the graph is replaced by one of each replica.

graph on GPU:0, GPU:1, some nodes anywhere          devices of replica 1: ["/device:GPU:2", "/device:GPU:3"]
GPU:0 and anywhere -> GPU:2, GPU:1 -> GPU:3

graph on GPU:0, GPU:1 and their host CPU:0          the same devices: nodes of hosts are on the host of the replica
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ....errors import InvalidArgumentError, shown
from ...builder.checks import requested_device
from ...graph import Graph
from ..devices_of_nodes import host_of

ReplicaDevices = tuple[str, ...]


def replica_devices(devices: Sequence[str | Sequence[str]]) -> list[ReplicaDevices]:
    """The devices of each replica as nodes request them; InvalidArgumentError for none, or one that is used twice."""
    if isinstance(devices, str) or not isinstance(devices, Sequence) or not devices:
        raise InvalidArgumentError(f"{shown(devices)} are no devices of replicas; give a list with one entry a replica")
    found = [tuple(map(requested_device, (entry,) if isinstance(entry, str) else tuple(entry))) for entry in devices]
    seen: set[str] = set()
    for entry in found:
        if not entry:
            raise InvalidArgumentError("a replica without a device; give each at least one")
        twice = next((device for device in entry if device in seen), None)
        if twice is not None:
            raise InvalidArgumentError(f"{twice!r} is given to two replicas; give each its own devices")
        seen.update(entry)
    return found


def device_maps(graph: Graph, used: Iterable[int], devices: Sequence[ReplicaDevices]) -> list[dict[str, str]]:
    """By replica what replaces each device that the graph's nodes `used` request; "" is replaced by the first.

    The host of the first device need not be given: it is replaced by that of the replica's first device. Raises
    InvalidArgumentError if a replica has not as many devices as the graph.
    """
    names = {name: requested_device(name) for name in {graph.requested_device(node) for node in used} - {""}}
    own = sorted(set(names.values()))
    hosts = [device for device in own if device in map(host_of, own)]
    if len(own) > 1 and len(hosts) == 1 and any(len(entry) == len(own) - 1 for entry in devices):
        others = [device for device in own if device not in hosts]
        own, devices = [*others, *hosts], [(*entry, host_of(entry[0])) for entry in devices]
    maps = []
    for rank, entry in enumerate(devices):
        if len(entry) != max(1, len(own)):
            raise InvalidArgumentError(
                f"the training step is on {len(own)} devices ({', '.join(own)}), replica {rank} has {len(entry)}; "
                "give each replica as many, in the order of the names of those that they replace"
            )
        replaced = dict(zip(own, entry, strict=True)) if own else {}
        maps.append({"": entry[0], **{name: replaced[device] for name, device in names.items()}})
    return maps
