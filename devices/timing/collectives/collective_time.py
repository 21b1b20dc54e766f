"""Time of a collective among devices of a cluster.

    collective_time("all_reduce", ["gpu:0", "gpu:1"], 1 << 20, cluster)

Placement decides. Ranks of one host and one model of GPU whose curves were measured: those curves (`measured`). Ranks
of one host without curves: the fastest algorithm over their links (`algorithms`). Ranks of several hosts: inside each,
over all network ports at once, inside again (`hierarchy`). The order of the ranks does not matter.

Without curves 80 % of times are taken to lie within a factor of 1.7 on either side: so many of the 840 rows of NCCL
curves of nine systems (2 to 8 GPUs of one host) do. Half of them take more than 1.38 times the time said here, and the
two assumed constants of `algorithms` were chosen beside these rows. Between hosts nothing was compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.ops.device_kinds import device_kind
from ...cluster import Cluster
from ...device import Device
from ...topology import Route
from ..costs.source import Provenance
from ..fits.calibration import Calibration
from .algorithms import GroupWay, PlannedCost, fastest
from .cost import CollectiveCost
from .hierarchy import over_hosts
from .kinds import kind_named
from .measured import CollectiveModel

_FACTOR = 1.7  # of the interval without curves


def collective_time(
    kind: str,
    ranks: Sequence[str],
    size_bytes: int,
    cluster: Cluster,
    *,
    calibration: Calibration | None = None,
) -> CollectiveCost:
    """Time of one collective; `ranks` are names of devices, full or short, and `calibration` None the catalog's.

    The size is the output of an all-gather, the input of a reduce-scatter, else the buffer of a rank. Raises
    InvalidArgumentError for an unknown kind or device, a device twice, fewer than two ranks and a negative size.
    """
    kind = kind_named(kind)
    devices = _devices(kind, ranks, cluster)
    if isinstance(size_bytes, bool) or not isinstance(size_bytes, int) or size_bytes < 0:
        raise InvalidArgumentError(f"{kind}: size_bytes = {size_bytes!r} must be a whole number of bytes, 0 or more")
    groups: dict[str, list[Device]] = {}
    for device in devices:
        groups.setdefault(device.host, []).append(device)
    if len(groups) == 1:
        model = _model(devices, calibration)
        if model is not None:
            return _from_curves(model, kind, len(devices), size_bytes)
        planned = fastest(kind, len(devices), size_bytes, _inside_way(devices, cluster))
    else:
        per_host = [len(group) for group in groups.values()]
        inside = partial(_inside, list(groups.values()), cluster, calibration)
        planned = over_hosts(kind, per_host, size_bytes, _ports(groups, cluster), inside)
    return _wide(planned, "roofline")


def _devices(kind: str, ranks: Sequence[str], cluster: Cluster) -> list[Device]:
    """The devices of the ranks in the order of the cluster."""
    if isinstance(ranks, str):
        raise InvalidArgumentError(f"{kind}: ranks = {ranks!r} must be a list of device names, such as ['gpu:0']")
    found = [cluster.find(name) for name in ranks]
    for i, device in enumerate(found):
        if device in found[:i]:
            raise InvalidArgumentError(f"{kind}: rank {ranks[i]!r} is given twice; every rank needs its own device")
    if len(found) < 2:
        raise InvalidArgumentError(f"{kind}: {len(found)} ranks; a collective needs at least two")
    if kind == "send_recv" and len(found) != 2:
        raise InvalidArgumentError(f"{kind}: {len(found)} ranks; it has a sender and a receiver")
    order = {name: i for i, name in enumerate(cluster.names)}
    return sorted(found, key=lambda device: order[device.name])


def _model(devices: Sequence[Device], calibration: Calibration | None) -> CollectiveModel | None:
    """The measured curves of the devices of one host, if all are of one model that has some."""
    names = {device.spec.name for device in devices}
    if len(names) > 1:
        return None
    fits = (calibration or Calibration.of_catalog()).device(names.pop())
    model: CollectiveModel | None = fits.collectives if fits is not None else None
    return model


def _from_curves(model: CollectiveModel, kind: str, ranks: int, size_bytes: int) -> CollectiveCost:
    time_ns, low_ns, high_ns, provenance = model.predict(kind, ranks, np.array([size_bytes]))
    time, low, high = (round(float(column[0])) for column in (time_ns, low_ns, high_ns))
    return CollectiveCost(time, low, high, "measured", "measured", provenance)


def _inside(
    groups: Sequence[Sequence[Device]],
    cluster: Cluster,
    calibration: Calibration | None,
    kind: str,
    ranks: int,
    size_bytes: float,
) -> PlannedCost:
    """The slowest host's part of a collective; `ranks` is the largest host's and each host takes its own."""
    costs = []
    for group in (group for group in groups if len(group) > 1):
        model = _model(group, calibration)
        if model is None:
            costs.append(fastest(kind, len(group), size_bytes, _inside_way(group, cluster)))
        else:
            time_ns = float(model.predict(kind, len(group), np.array([size_bytes])).time_ns[0])
            costs.append(PlannedCost(time_ns, "measured", "measured"))
    return max(costs)


def _inside_way(devices: Sequence[Device], cluster: Cluster) -> GroupWay:
    """The slowest way between ranks that follow each other, links that several ways share counted."""
    pairs = list(zip(devices, [*devices[1:], devices[0]], strict=True))
    routes = [cluster.topology.route(a.name, b.name) for a, b in pairs]
    return GroupWay(_rate_of_slowest(routes), max(route.latency_ns for route in routes))


def _rate_of_slowest(routes: Sequence[Route]) -> float:
    """Bytes/s of the slowest of routes that are used at once: a link's rate is divided among its routes."""
    users: dict[str, int] = {}
    for route in routes:
        for link in route.links:
            users[link.name] = users.get(link.name, 0) + 1
    rates = [link.bandwidth_bytes_per_s / users[link.name] for route in routes for link in route.links]
    return min(rates, default=_SAME_MEMORY_BYTES_PER_S)


_SAME_MEMORY_BYTES_PER_S = 10e9  # assumed: ranks of one process copy within its memory


def _ports(groups: dict[str, list[Device]], cluster: Cluster) -> GroupWay:
    """What all rings between hosts do together: the ways of the first, second ... rank of every host, all at once.

    The rate is that of a host: its slowest ring times its number of rings.
    """
    lists = list(groups.values())
    rings = max(len(group) for group in lists)
    routes = []
    for group, following in zip(lists, [*lists[1:], lists[0]], strict=True):
        for i in range(rings):
            src, dst = group[i * len(group) // rings], following[i * len(following) // rings]
            routes.append(_network_route(cluster, src, dst))
    return GroupWay(_rate_of_slowest(routes) * rings, max(route.latency_ns for route in routes))


def _network_route(cluster: Cluster, src: Device, dst: Device) -> Route:
    return cluster.topology.route(
        src.name,
        dst.name,
        src_on_host=not device_kind(src.type).own_memory,
        dst_on_host=not device_kind(dst.type).own_memory,
    )


def _wide(planned: PlannedCost, provenance: Provenance) -> CollectiveCost:
    time_ns = planned.time_ns
    return CollectiveCost(
        round(time_ns),
        round(time_ns / _FACTOR),
        round(time_ns * _FACTOR),
        planned.algorithm,
        planned.protocol,
        provenance,
    )
