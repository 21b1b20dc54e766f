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

from .algorithms import GroupWay, PlannedCost, fastest

Inside = Callable[[str, int, float], PlannedCost]  # kind, ranks of one host, bytes -> cost
_PHASES = {
    "all_reduce": ("reduce_scatter", "all_gather"),
    "all_gather": ("all_gather",),
    "reduce_scatter": ("reduce_scatter",),
    "broadcast": ("all_gather",),
}


def over_hosts(kind: str, per_host: list[int], size_bytes: float, ports: GroupWay, inside: Inside) -> PlannedCost:
    """The cost for hosts of `per_host` ranks; `ports` is what all ports of the slowest host do together."""
    hosts, most, ranks = len(per_host), max(per_host), sum(per_host)
    if kind == "all_to_all":
        between_bytes = size_bytes * most * (ranks - min(per_host)) / ranks
        between = fastest("send_recv", 2, between_bytes, ports)
        phases = [inside("all_to_all", most, size_bytes * most / ranks)] if most > 1 else []
    elif kind == "send_recv":
        between, phases = fastest(kind, 2, size_bytes * most, ports), []
    else:
        between = fastest(kind, hosts, size_bytes, ports)
        phases = [inside(phase, most, size_bytes) for phase in _PHASES[kind]] if most > 1 else []
    time_ns = between.time_ns + sum(phase.time_ns for phase in phases)
    name = f"hierarchical ({between.algorithm} between hosts)" if phases else between.algorithm
    return PlannedCost(time_ns, name, between.protocol)
