"""Collectives of several hosts: inside each host, then over all network ports at once, then inside again.

    all_reduce        reduce-scatter inside -> all-reduce of the shards between hosts -> all-gather inside
    all_gather        all-gather of each rank's part between hosts -> all-gather inside
    reduce_scatter    reduce-scatter inside -> reduce-scatter of the shards between hosts
    broadcast         the first host scatters, shards go between hosts, every host gathers
    all_to_all        between hosts what goes to other hosts, inside what stays

Every rank of a host leads one ring between hosts; those that share a network port share its rate, so between hosts a
host moves its shards at the rate of all ports that its ranks use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from .algorithms import GroupWay, PlannedCost, fastest

Inside = Callable[[str, int, float], PlannedCost]  # kind, ranks of one host, bytes -> cost
_PHASES: dict[str, tuple[str, ...]] = {  # inside the hosts
    "all_reduce": ("reduce_scatter", "all_gather"),
    "all_gather": ("all_gather",),
    "reduce_scatter": ("reduce_scatter",),
    "broadcast": ("all_gather",),
    "all_to_all": ("all_to_all",),
    "send_recv": (),
}


class HostPhase(NamedTuple):
    """One of the phases, which follow each other: inside every host, or between hosts, for so many bytes."""

    kind: str
    is_inside: bool
    size_bytes: float
    cost: PlannedCost


def host_phases(kind: str, per_host: list[int], size_bytes: float, ports: GroupWay, inside: Inside) -> list[HostPhase]:
    """The phases for hosts of `per_host` ranks; `ports` is what all ports of the slowest host do together."""
    hosts, most, ranks = len(per_host), max(per_host), sum(per_host)
    if kind == "all_to_all":
        between_bytes = size_bytes * most * (ranks - min(per_host)) / ranks
        phases = [HostPhase("send_recv", False, between_bytes, fastest("send_recv", 2, between_bytes, ports))]
        inner, inner_bytes = _PHASES[kind], size_bytes * most / ranks
    elif kind == "send_recv":
        phases = [HostPhase(kind, False, size_bytes * most, fastest(kind, 2, size_bytes * most, ports))]
        inner, inner_bytes = _PHASES[kind], 0.0
    else:
        phases = [HostPhase(kind, False, size_bytes, fastest(kind, hosts, size_bytes, ports))]
        inner, inner_bytes = _PHASES[kind], size_bytes
    for phase in inner if most > 1 else ():
        own = HostPhase(phase, True, inner_bytes, inside(phase, most, inner_bytes))
        phases.insert(0 if phase == "reduce_scatter" else len(phases), own)
    return phases


def over_hosts(phases: list[HostPhase]) -> PlannedCost:
    """The cost of phases one after the other."""
    (between,) = (phase.cost for phase in phases if not phase.is_inside)
    name = f"hierarchical ({between.algorithm} between hosts)" if len(phases) > 1 else between.algorithm
    return PlannedCost(sum(phase.cost.time_ns for phase in phases), name, between.protocol)
