"""What a collective does on the simulated hardware: a latency, then phases of flows over the links of its rings.

    all_reduce of 1 MiB over 8 H100s, alone 30 us:

    latency    11 us    `collective_time` of 0 bytes, which nothing stretches
    phase      19 us    8 flows, from each rank to the next, all links of the ring fully used

The flows move `bus_share` of the size each, 1.75 MiB, but at the 72 GB/s that a library reaches and not at the 450 GB/s
of the link. While they do, nobody else has the rest: so they count as flows of 19 us at 450 GB/s, which share links
max-min fair, and their true bytes are a share of that. Where links join the ranks of a host in pairs, each of its rings
has a flow for each of its hops, over the links of that pair. Between hosts the phases are those of `hierarchy`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from .collective_time import collective_time, phases_of
from .cost import CollectiveCost
from .group import RankGroup, group_of
from .kinds import bus_share

if TYPE_CHECKING:
    from ...cluster import Cluster
    from ...device import Device
    from ...topology import Route
    from ..fits.calibration import Calibration
    from ..hardware.equals import EqualGroups

_ALONE = CollectiveCost(0, 0, 0, "none", "", "free")


class FlowPhase(NamedTuple):
    """Flows that begin together; the phase takes `alone_ns` if nobody else uses their links.

    Each moves `moved_bytes` and, alone, gets `rate` of `shares` at worst: the bandwidth of the slowest link in bytes/s,
    and how many of the flows share it. Without routes only the time passes. Flows of representatives have `equals`.
    """

    alone_ns: int
    routes: tuple[Route, ...]
    moved_bytes: float
    rate: int
    shares: int
    equals: EqualGroups | None = None


class CollectivePlan(NamedTuple):
    """A collective of certain ranks and size. `name` says what it is, of how many, and over which links."""

    name: str
    size_bytes: int
    cost: CollectiveCost
    latency_ns: int
    phases: tuple[FlowPhase, ...]
    rings: tuple[str, ...] = ()
    """over links that join ranks in pairs, of the first host with several ranks"""


def plan_of(
    kind: str, ranks: Sequence[str], size_bytes: int, cluster: Cluster, calibration: Calibration | None
) -> CollectivePlan:
    """The plan of a collective of these devices. A group of one takes no time. Raises as `collective_time`."""
    if len(ranks) == 1:
        return CollectivePlan(f"{kind} of 1 {_devices([cluster.find(ranks[0])])}", size_bytes, _ALONE, 0, ())
    cost = collective_time(kind, ranks, size_bytes, cluster, calibration=calibration)
    empty_ns = collective_time(kind, ranks, 0, cluster, calibration=calibration).time_ns
    latency_ns = min(empty_ns, cost.time_ns)
    group = group_of(kind, ranks, cluster, calibration)
    phases = _phases(kind, group, size_bytes, cost.time_ns - latency_ns)
    devices = [device for host in group.by_host for device in host]
    name = f"{kind} of {len(devices)} {_devices(devices)} over {_slowest_link(phases)}"
    rings = () if cost.rings is None or kind == "permute" else tuple(group.named_rings)
    return CollectivePlan(name, size_bytes, cost, latency_ns, phases, rings)


def _devices(devices: Sequence[Device]) -> str:
    """What the devices are called together: "gpus", "cpu", "devices" if they differ."""
    kinds = {device.type.lower() for device in devices}
    return f"{kinds.pop() if len(kinds) == 1 else 'device'}{'s' if len(devices) > 1 else ''}"


def _slowest_link(phases: Sequence[FlowPhase]) -> str:
    """The model of the slowest link of the longest phase."""
    longest = max(phases, key=lambda phase: phase.alone_ns, default=None)
    links = [link for route in longest.routes for link in route.links] if longest is not None else []
    return min(links, key=lambda link: link.bandwidth_bytes_per_s).model if links else "memory"


def _phases(kind: str, group: RankGroup, size_bytes: int, rest_ns: int) -> tuple[FlowPhase, ...]:
    """The phases, which take `rest_ns` together."""
    if kind == "permute":
        return (_phase(rest_ns, group.neighbours, size_bytes),)
    if len(group.by_host) == 1:
        (devices,) = group.by_host
        moved = bus_share(kind, len(devices)) * size_bytes / group.rings_inside
        return (_phase(rest_ns, _inside(group, kind), moved),)
    phases, empty = (phases_of(kind, group, size) for size in (size_bytes, 0))
    weights = [max(phase.cost.time_ns - none.cost.time_ns, 0.0) for phase, none in zip(phases, empty, strict=True)]
    total = sum(weights) or 1.0
    ends = [0, *(round(rest_ns * sum(weights[: i + 1]) / total) for i in range(len(weights)))]
    planned = []
    for phase, (begin, end) in zip(phases, pairwise(ends), strict=True):
        routes = _inside(group, phase.kind) if phase.is_inside else group.rings
        ranks = max(group.per_host) if phase.is_inside else len(group.by_host)
        share = bus_share(phase.kind, ranks) * phase.size_bytes
        moved = share / (group.rings_inside if phase.is_inside else max(group.per_host))
        planned.append(_phase(end - begin, routes, moved))
    return tuple(planned)


def _inside(group: RankGroup, kind: str) -> tuple[Route, ...]:
    """The ways of all rings inside hosts, without that back to the first rank where that gets nothing."""
    is_open = kind in ("broadcast", "send_recv")
    return tuple(route for ring in group.inside for route in (ring[:-1] if is_open else ring))


def _phase(alone_ns: int, routes: Sequence[Route], moved_bytes: float) -> FlowPhase:
    crossing = tuple(route for route in routes if route.links)
    links = [link for route in crossing for link in route.links]
    if not links or not alone_ns:
        return FlowPhase(alone_ns, (), 0.0, 1, 1)
    users = Counter(map(id, links))
    slowest = min(links, key=lambda link: link.bandwidth_bytes_per_s / users[id(link)])
    return FlowPhase(alone_ns, crossing, moved_bytes, slowest.bandwidth_bytes_per_s, users[id(slowest)])
