"""The devices of a cluster that a session may use: `device_count` and `device_filters` of its config.

The rules are those of TensorFlow 2.21: `capped` is what its local sessions do, `filtered` what its masters do. The
devices of the client's task pass every filter.
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

_HOST = CPU.name  # TensorFlow requires one of this kind per process


def capped(cluster: Cluster, counts: Mapping[str, int]) -> Cluster:
    """The first devices of every task, at most `counts[kind]` of a kind; a count below 0 is no limit, except for CPUs.

    Kinds are spelt as in device names; kinds that the cluster does not have are ignored. Raises NotFoundError when no
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
    """The devices of the client's task and those that match a filter; all devices if there are no filters.

    A filter is a device name, full or in part, such as "/job:ps" or "/job:worker/task:1/device:GPU:0"; it need not
    match any device. Raises InvalidArgumentError for a filter that is no device name.
    """
    patterns = []
    for text in filters:
        name = find_full_name(text)
        if name is None:
            raise InvalidArgumentError(
                f"Invalid device filter: {text}: ConfigProto.device_filters are device names, full or in part, such as "
                '"/job:ps" or "/job:worker/task:1"'
            )
        patterns.append(name)
    if not patterns:
        return cluster
    own = cluster.client.task_name
    return _part(cluster, [device for device in cluster if device.task_name == own or _fits(device, patterns)])


def _fits(device: Device, filters: Iterable[ParsedName]) -> bool:
    name = parse_full_name(device.name)
    return any(are_compatible(name, pattern) for pattern in filters)


def _part(cluster: Cluster, kept: list[Device]) -> Cluster:
    if len(kept) == len(cluster):
        return cluster
    names, rules = {device.name for device in kept}, cluster.topology.rules
    pairs = {pair: link for pair, link in rules.pairs.items() if names.issuperset(pair)}
    return Cluster(kept, evolve(rules, pairs=pairs), cluster.profiles)
