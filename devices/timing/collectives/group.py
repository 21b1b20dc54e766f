"""The ranks of a collective as the cluster has them: by host, with the ways between them.

    16 ranks on 2 hosts of 8 H100s      hosts: one kind of host, 8 ranks with the curves of an H100
                                        per_host: [8, 8]
                                        ports: all rings between the hosts

Where links join the GPUs of a host in pairs, its ranks have rings that share no link (`rings`); without a ring that
visits all of them they go the ways that there are, over PCIe.

What does not depend on the bytes is found once for each group of a cluster and calibration, and kept for the latest
groups. Hosts that are alike stand for each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple
from weakref import WeakKeyDictionary

from ....errors import InvalidArgumentError
from ....graph.device_name import device_order
from ....graph.ops.device_kinds import device_kind
from ...cluster import Cluster
from ...device import Device
from ...fabric import Fabric
from ...topology import Route, Topology
from ..fits.calibration import Calibration
from .algorithms import GroupWay
from .measured import CollectiveModel
from .rings import Ring, hops_of, rings_of

_SAME_MEMORY_BYTES_PER_S = 10e9  # assumed: ranks of one process copy within its memory
_MOST_KEPT = 64  # groups of a cluster


class HostGroup(NamedTuple):
    """The ranks of one host, or of several that are alike: their measured curves, or the way between them.

    `rings` is the number of their rings where links join pairs, None where they do not.
    """

    ranks: int
    model: CollectiveModel | None
    way: GroupWay
    rings: int | None = None


@dataclass
class RankGroup:
    """The ranks of a collective, in the order of the cluster and by host; `hosts` has those that differ."""

    topology: Topology
    by_host: Sequence[Sequence[Device]]
    calibration: Calibration | None
    _rings_of: dict[tuple[str, ...], list[Ring] | None] = field(default_factory=dict)

    @cached_property
    def per_host(self) -> list[int]:
        """The ranks of each host."""
        return [len(devices) for devices in self.by_host]

    @cached_property
    def hosts(self) -> list[HostGroup]:
        """The kinds of hosts."""
        return list(dict.fromkeys(self._host(devices) for devices in self.by_host))

    @cached_property
    def ports(self) -> GroupWay:
        """What all rings between hosts do together: a host's rate is its slowest ring times its number of rings."""
        latency_ns = max(route.latency_ns for route in self.rings)
        return GroupWay(_rate_of_slowest(self.rings) * max(self.per_host), latency_ns)

    @cached_property
    def rings(self) -> tuple[Route, ...]:
        """The ways of all rings between hosts: of the first, second ... rank of every host to that of the next host."""
        rings = max(self.per_host)
        routes = []
        for group, following in zip(self.by_host, [*self.by_host[1:], self.by_host[0]], strict=True):
            for i in range(rings):
                src, dst = group[i * len(group) // rings], following[i * len(following) // rings]
                routes.append(network_route(self.topology, src, dst))
        return tuple(routes)

    @cached_property
    def inside(self) -> list[list[Route]]:
        """Of each host of several ranks its rings: the ways from each rank to the next, the last one back to the first.

        A host with more rings than another uses as many.
        """
        return [
            self._ring([devices[rank] for rank in ring])
            for devices in self.by_host
            if len(devices) > 1
            for ring in (self._mesh_rings(devices) or [tuple(range(len(devices)))])[: self.rings_inside]
        ]

    @cached_property
    def rings_inside(self) -> int:
        """How many rings each host of several ranks uses."""
        of_hosts = [len(self._mesh_rings(devices) or [()]) for devices in self.by_host if len(devices) > 1]
        return min(of_hosts, default=1)

    @cached_property
    def named_rings(self) -> list[str]:
        """The rings over links of pairs, of the first host that has several ranks: "gpu:0 1 2 3"."""
        devices = next((devices for devices in self.by_host if len(devices) > 1), [])
        kind = devices[0].type.lower() if devices else ""
        rings = (self._mesh_rings(devices) or [])[: self.rings_inside]
        return [f"{kind}:{' '.join(str(devices[rank].index) for rank in ring)}" for ring in rings]

    @cached_property
    def neighbours(self) -> list[Route]:
        """The ways from each rank to the next, in the order of collectives, the last one back to the first."""
        ranks = [device for devices in self.by_host for device in devices]
        return self._ring(sorted(ranks, key=lambda device: device_order(device.name)))

    @cached_property
    def way_to_neighbour(self) -> GroupWay:
        """The slowest of these ways, links that several of them share counted."""
        return _slowest_way(self.neighbours)

    def _ring(self, devices: Sequence[Device]) -> list[Route]:
        pairs = zip(devices, [*devices[1:], devices[0]], strict=True)
        return [network_route(self.topology, a, b) for a, b in pairs]

    def _host(self, devices: Sequence[Device]) -> HostGroup:
        if len(devices) < 2:
            return HostGroup(1, None, GroupWay(_SAME_MEMORY_BYTES_PER_S, 0))
        model, rings = _model(devices, self.calibration), self._mesh_rings(devices)
        if model is not None and model.rings and rings is None:
            model = None  # measured over links of pairs, which say nothing of a switch
        way = _NO_WAY if model is not None else self._inside_way(devices, rings)
        return HostGroup(len(devices), model, way, None if rings is None else len(rings))

    def _inside_way(self, devices: Sequence[Device], rings: Sequence[Ring] | None) -> GroupWay:
        """The slowest way between ranks that follow each other, links that several ways share counted.

        Over rings of links: what all rings do together.
        """
        if not rings:
            return _slowest_way(self._ring(devices))
        hops = [(devices[a], devices[b]) for ring in rings for a, b in hops_of(ring)]
        links = [self.topology.fabric.peers(a)[b.name].link for a, b in hops]
        rate = min(link.bandwidth_bytes_per_s for link in links) * len(rings)
        return GroupWay(rate, max(link.latency_ns for link in links), rings=len(rings))

    def _mesh_rings(self, devices: Sequence[Device]) -> list[Ring] | None:
        """The rings of a host's ranks over links of pairs; None where no links join pairs there."""
        names = tuple(device.name for device in devices)
        if names not in self._rings_of:
            self._rings_of[names] = rings_over_pairs(self.topology.fabric, devices)
        return self._rings_of[names]


_NO_WAY = GroupWay(_SAME_MEMORY_BYTES_PER_S, 0)  # of ranks with curves, which nobody asks for
# A group has the topology, not the cluster: a value that referred to its key would keep it for ever.
_kept: WeakKeyDictionary[Cluster, dict[tuple[tuple[str, ...], int], RankGroup]] = WeakKeyDictionary()


def group_of(kind: str, ranks: Sequence[str], cluster: Cluster, calibration: Calibration | None) -> RankGroup:
    """The group of these devices; InvalidArgumentError for unknown ones, one twice, or too few for the kind."""
    if isinstance(ranks, str):
        raise InvalidArgumentError(f"{kind}: ranks = {ranks!r} must be a list of device names, such as ['gpu:0']")
    key, groups = (tuple(ranks), id(calibration)), _kept.setdefault(cluster, {})
    group = groups.get(key)
    if group is None or group.calibration is not calibration:
        devices = _devices(kind, ranks, cluster)
        if len(groups) >= _MOST_KEPT:
            del groups[next(iter(groups))]
        group = groups[key] = RankGroup(cluster.topology, devices, calibration)
    if kind == "send_recv" and len(ranks) != 2:
        raise InvalidArgumentError(f"{kind}: {len(ranks)} ranks; it has a sender and a receiver")
    return group


def _devices(kind: str, ranks: Sequence[str], cluster: Cluster) -> list[list[Device]]:
    """The devices in the order of the cluster, by host."""
    found: dict[str, Device] = {}
    for rank in ranks:
        device = cluster.find(rank)
        if device.name in found:
            raise InvalidArgumentError(f"{kind}: rank {rank!r} is given twice; every rank needs its own device")
        found[device.name] = device
    if len(found) < 2:
        raise InvalidArgumentError(f"{kind}: {len(found)} ranks; a collective needs at least two")
    by_host: dict[str, list[Device]] = {}
    for name in sorted(found, key=cluster.numbers.__getitem__):
        by_host.setdefault(found[name].host, []).append(found[name])
    return list(by_host.values())


def _model(devices: Sequence[Device], calibration: Calibration | None) -> CollectiveModel | None:
    """The measured curves of the devices of one host, if all are of one model that has some."""
    names = {device.spec.name for device in devices}
    if len(names) > 1:
        return None
    fits = (calibration or Calibration.of_catalog()).device(names.pop())
    model: CollectiveModel | None = fits.collectives if fits is not None else None
    return model


def rings_over_pairs(fabric: Fabric, devices: Sequence[Device]) -> list[Ring] | None:
    """The rings of devices of one host over the links that join pairs of them; None where no links do."""
    if not any(fabric.in_mesh(device) for device in devices):
        return None
    peers = [fabric.peers(device) for device in devices]
    links = {
        (a, b): joined[device.name].links
        for a, joined in enumerate(peers)
        for b, device in enumerate(devices)
        if device.name in joined
    }
    return rings_of(len(devices), links)


def _slowest_way(routes: Sequence[Route]) -> GroupWay:
    """Rate and latency of the slowest of routes that are used at once."""
    return GroupWay(_rate_of_slowest(routes), max(route.latency_ns for route in routes))


def _rate_of_slowest(routes: Sequence[Route]) -> float:
    """Bytes/s of the slowest of routes that are used at once: a link's rate is divided among its routes."""
    links = [link for route in routes for link in route.links]  # one object each in a topology: names take longer
    users = Counter(map(id, links))
    rates = [link.bandwidth_bytes_per_s / users[id(link)] for link in links]
    return min(rates, default=_SAME_MEMORY_BYTES_PER_S)


def network_route(topology: Topology, src: Device, dst: Device) -> Route:
    """The way from the memory of one rank to that of another."""
    return topology.route(
        src.name,
        dst.name,
        src_on_host=not device_kind(src.type).own_memory,
        dst_on_host=not device_kind(dst.type).own_memory,
    )
