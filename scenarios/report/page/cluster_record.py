"""The cluster of a step for its page: machines, folded where they are equal, with their devices and links.

16 machines of 8 GPUs and a network      one record with count 16: what is in a machine, and the links between
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from attrs import evolve

from ....devices import Cluster
from ....devices.device import Device
from ....devices.fabric import MeshRule, NicRule, PcieRule, SocketRule
from ....devices.topology import Link, Topology
from ....errors import InvalidArgumentError
from .page_data import Document

_NAMED = 4  # of machines that are equal
_DRAWN = 8  # devices of a machine that have names
_MOST_RECORDS = 64  # machines that differ


def cluster_record(cluster: Cluster) -> Document:
    """Equal machines as one, and the network between them."""
    machines = cluster.topology.fabric.hosts
    alike: defaultdict[object, list[str]] = defaultdict(list)
    for host, devices in machines.items():
        alike[_likeness(cluster, host, devices)].append(host)
    groups = list(alike.values())
    return {
        "hosts": [_machines(cluster, hosts) for hosts in groups[:_MOST_RECORDS]],
        "more": sum(map(len, groups[_MOST_RECORDS:])),
        "network": _network(cluster) if len(machines) > 1 else None,
    }


def _likeness(cluster: Cluster, host: str, devices: Sequence[Device]) -> object:
    """Equal for machines of equal devices that the same rules hold for, and of which no pair has a link of its own."""
    rules = cluster.topology.rules
    of_hosts: tuple[NicRule | PcieRule | SocketRule | MeshRule, ...]
    of_hosts = (*rules.fabric.nics, *rules.fabric.pcie, *rules.fabric.sockets, *rules.fabric.meshes)
    own = tuple(number for number, rule in enumerate(of_hosts) if host in rule.hosts)
    has_pairs = bool(rules.pairs) and any(device.name in pair for pair in rules.pairs for device in devices)
    return tuple(_model(device) for device in devices), own, host if has_pairs else None


def _model(device: Device) -> tuple[str, str, int | None]:
    return device.type, device.spec.name, device.spec.memory_bytes


def _machines(cluster: Cluster, hosts: Sequence[str]) -> Document:
    """Equal machines; the first speaks for all."""
    devices = cluster.topology.fabric.hosts[hosts[0]]
    return {
        "names": [cluster.short_names.shorten(host) for host in hosts[:_NAMED]],
        "count": len(hosts),
        "devices": [_devices(cluster, same) for same in _by_model(devices)],
        "links": list(_links(cluster, devices)),
    }


def _by_model(devices: Sequence[Device]) -> list[list[Device]]:
    groups: defaultdict[object, list[Device]] = defaultdict(list)
    for device in devices:
        groups[_model(device)].append(device)
    return list(groups.values())


def _devices(cluster: Cluster, devices: Sequence[Device]) -> Document:
    first = devices[0]
    return {
        "model": first.spec.name,
        "kind": first.type,
        "count": len(devices),
        "names": [cluster.short_names.shorten(device.name) for device in devices[:_DRAWN]],
        "memory_bytes": first.spec.memory_bytes,
    }


def _links(cluster: Cluster, devices: Sequence[Device]) -> Iterator[Document]:
    """The links between neighbours of a machine, one for each pair of kinds and each model that joins it."""
    names, rules = {device.name for device in devices}, cluster.topology.rules
    within = {pair: link for pair, link in rules.pairs.items() if names.issuperset(pair)}
    topology = Topology(devices, evolve(rules, pairs=within))  # that of the cluster keeps which links were used
    seen = set()
    firsts = [same[0] for same in _by_model(devices)]
    pairs = [*((firsts[0], other) for other in firsts[1:]), *_neighbours(devices)]
    for source, destination in pairs:
        for link in _route(topology, source, destination):
            between = f"{source.type.lower()} and {destination.type.lower()}"
            key = between, link.model, link.bandwidth_bytes_per_s
            if key not in seen:
                seen.add(key)
                yield {"between": between, "model": link.model, "bandwidth": link.bandwidth_bytes_per_s}


def _neighbours(devices: Sequence[Device]) -> Iterator[tuple[Device, Device]]:
    """The first two devices of each model."""
    for same in _by_model(devices):
        yield from list(pairwise(same))[:1]


def _route(topology: Topology, source: Device, destination: Device) -> tuple[Link, ...]:
    try:
        return topology.route(source.name, destination.name).links
    except InvalidArgumentError:  # nothing joins them
        return ()


def _network(cluster: Cluster) -> Document:
    """What joins machines: the port of a machine, and the switches."""
    fabric, rules = cluster.topology.fabric, cluster.topology.rules.fabric
    port = fabric.ports(cluster.client.host)[0].link
    switches = [leaf.name for leaf in rules.leaves]
    return {
        "model": port.name,
        "bandwidth": port.bandwidth_bytes_per_s,
        "ports": len(fabric.ports(cluster.client.host)),
        "switches": [*switches[:_NAMED], *(("spine",) if rules.spine else ())],
        "switch_count": len(switches),
    }
