"""Times of collectives along the axes of splits, in columns: where the ranks of a group are, and what their ways carry.

    tp=2 dp=16 on hosts of 8:    a dp group has 4 ranks on each of 4 hosts, and 2 such groups share the ports of a host
        reduce-scatter inside 4 ranks, all-reduce of the shards between 4 hosts, all-gather inside

Ranks are numbered as `Split` says: tp next to each other, then cp, dp, pp. All ranks of a host send to other hosts at
once, so a ring between hosts has the rate of its port, or its share of what all ports of a host carry together
(`collectives.hierarchy` is the same for one collective alone).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ....devices.timing.collectives.algorithms import GroupWay, fastest_times
from ....graph.arrays import Floats, Numbers
from ..configurations import Configurations
from ..keys import distinct_rows
from ..machine import Machine


class AxisGroups(NamedTuple):
    """By row the ranks of a group on one host, and the hosts that it is spread over."""

    inside: Numbers
    hosts: Numbers


class ExchangeTimes(NamedTuple):
    """By row, in ns: inside hosts, and between them what no byte changes and what bytes take."""

    inside_ns: Floats
    fixed_ns: Floats
    wire_ns: Floats


def groups_along(axis: str, of: Configurations, per_host: int) -> AxisGroups:
    """The groups of an axis: "tp", "cp", "ep", "pp", and those with the same weights: "dp", "experts" for routed ones.

    The ranks of cp have the same weights, and of routed experts those of tp too.
    """
    if axis == "experts":  # neighbours along tp and cp, and with these every ep-th of dp
        same, size = of.tp * of.cp, of.dp // of.ep * of.cp * of.tp
        apart = same * of.ep
        inside = np.clip(np.where(per_host < apart, np.minimum(per_host, same), per_host // apart * same), 1, size)
        return AxisGroups(inside, -(-size // inside))
    size, stride = {
        "tp": (of.tp, np.ones_like(of.tp)),
        "cp": (of.cp, of.tp),
        "ep": (of.ep, of.tp * of.cp),
        "dp": (of.dp * of.cp, of.tp),
        "pp": (of.pp, of.tp * of.cp * of.dp),
    }[axis]
    inside = np.clip(per_host // stride, 1, size)
    return AxisGroups(inside, -(-size // inside))


def exchange_times(
    machine: Machine, kind: str, groups: AxisGroups, size_bytes: Floats, used_per_host: Numbers
) -> ExchangeTimes:
    """The time of a collective of each row; nothing for groups of one rank.

    `used_per_host` are the GPUs of a host that take part in the step, all of which use its ports at once.
    """
    rows = len(size_bytes)
    times = ExchangeTimes(np.zeros(rows), np.zeros(rows), np.zeros(rows))
    kinds, number = distinct_rows({"inside": groups.inside, "hosts": groups.hosts, "used": used_per_host})
    for place, (inside, hosts, used) in enumerate(zip(*(kinds[name].tolist() for name in kinds), strict=True)):
        if inside * hosts < 2:
            continue
        at = np.flatnonzero(number == place)
        said = _of_group(machine, kind, inside, hosts, used, size_bytes[at])
        for column, values in zip(times, said, strict=True):
            column[at] = values
    return times


def _of_group(machine: Machine, kind: str, inside: int, hosts: int, used: int, size: Floats) -> ExchangeTimes:
    nothing = np.zeros(len(size))
    if hosts == 1:
        return ExchangeTimes(_inside(machine, kind, inside, size), nothing, nothing)
    share = min(machine.port_bytes_per_s, machine.host_bytes_per_s / used)
    way = GroupWay(share * inside, machine.port_latency_ns)
    if kind == "send_recv":  # all ranks of a host at once, each on its own share, at the full rate of a plain transfer
        return ExchangeTimes(nothing, nothing + machine.port_latency_ns, size * 1e9 / share)
    if kind == "all_to_all":
        ranks = inside * hosts
        between = fastest_times("send_recv", 2, size * inside * (ranks - inside) / ranks, way)
        return ExchangeTimes(_inside(machine, kind, inside, size * inside / ranks), *between)
    phases = {"all_reduce": ("reduce_scatter", "all_gather")}.get(kind, (kind,))
    within = sum((_inside(machine, phase, inside, size) for phase in phases), nothing)
    return ExchangeTimes(within, *fastest_times(kind, hosts, size, way))


def _inside(machine: Machine, kind: str, ranks: int, size: Floats) -> Floats:
    """Time among ranks of one host: by measured curves, or by the way between them."""
    if ranks < 2:
        return np.zeros(len(size))
    group = machine.inside
    if group.model is not None:
        return group.model.predict(kind, ranks, size, rings=group.rings).time_ns
    said = fastest_times(kind, 2 if kind == "send_recv" else ranks, size, group.way)
    return said.fixed_ns + said.wire_ns
