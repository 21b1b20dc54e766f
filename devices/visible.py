"""The devices of a cluster that a session may use: so many of a kind, and those that filters let through.

Flows in: a cluster, `device_count` and `device_filters` of a session's config. Flows out: a cluster with fewer devices,
in their order, or the very same one. Always holds: the devices of the client's task pass every filter.

The rules are those of TensorFlow 2.21: the first read from its local sessions, the second from its masters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from attrs import evolve

from ..errors import InvalidArgumentError, NotFoundError
from ..graph.device_name import ParsedName, are_compatible, find_full_name, parse_full_name
from ..graph.ops.device_kinds import CPU
from .cluster import Cluster
from .device import Device

_HOST = CPU.name  # what TensorFlow counts as the devices of a process


def capped(cluster: Cluster, counts: Mapping[str, int]) -> Cluster:
    """The first devices of every task, at most `counts[kind]` of a kind; a count below 0 leaves out none but CPUs.

    Kinds are spelt as in device names; others than those of the cluster do not matter. Raises NotFoundError where no
    CPU is left.
    """
    if counts.get(_HOST, 1) <= 0:
        raise NotFoundError(
            f"No CPU devices are available in this process: ConfigProto.device_count has {counts[_HOST]} of them"
        )
    seen: Counter[tuple[str, str]] = Counter()
    kept: list[Device] = []
    for device in cluster:
        seen[device.task_name, device.type] += 1
        most = counts.get(device.type, -1)
        if most < 0 or seen[device.task_name, device.type] <= most:
            kept.append(device)
    return _part(cluster, kept)


def filtered(cluster: Cluster, filters: Iterable[str]) -> Cluster:
    """The devices of the client's task, and those that fit one of the filters, if there are any.

    A filter is a device name, full or in part, such as "/job:ps" or "/job:worker/task:1/device:GPU:0"; one that fits no
    device is none the worse. Raises InvalidArgumentError for one that is no device name.
    """
    wanted = []
    for text in filters:
        name = find_full_name(text)
        if name is None:
            raise InvalidArgumentError(
                f"Invalid device filter: {text}: ConfigProto.device_filters are device names, full or in part, such as "
                '"/job:ps" or "/job:worker/task:1"'
            )
        wanted.append(name)
    if not wanted:
        return cluster
    own = cluster.client.task_name
    return _part(cluster, [device for device in cluster if device.task_name == own or _fits(device, wanted)])


def _fits(device: Device, filters: Iterable[ParsedName]) -> bool:
    name = parse_full_name(device.name)
    return any(are_compatible(name, pattern) for pattern in filters)


def _part(cluster: Cluster, kept: list[Device]) -> Cluster:
    if len(kept) == len(cluster):
        return cluster
    names, rules = {device.name for device in kept}, cluster.topology.rules
    return Cluster(
        kept, evolve(rules, pairs={pair: link for pair, link in rules.pairs.items() if names.issuperset(pair)})
    )
