"""Max-min fair rates of groups of flows, by progressive filling in integers.

The rates are those of `flows`, which the tests compare with: the port that can give the least share gives it to its
flows, what they take is taken from their other ports, and the rest is shared in the same way. A share is rounded down.
There are few groups and ports in a search: plain loops beat numpy below a hundred.
"""

from __future__ import annotations

from collections.abc import Iterable

from .flow_groups import FlowGroup
from .ports import ActiveLink


def joined(seeds: Iterable[ActiveLink], mark: int) -> tuple[list[ActiveLink], list[FlowGroup]]:
    """The watched ports that groups join to some watched ports, and these groups; `mark` is new for each search."""
    ports: list[ActiveLink] = []
    groups: list[FlowGroup] = []
    for port in seeds:
        if port.mark != mark:
            port.mark = mark
            ports.append(port)
    for port in ports:  # grows while it is read
        for group in port.crossings:
            if group.mark != mark:
                group.mark = mark
                groups.append(group)
                for other in group.ports:
                    if other.mark != mark:
                        other.mark = mark
                        ports.append(other)
    return ports, groups


def find_fair_rates(ports: list[ActiveLink], groups: list[FlowGroup]) -> None:
    """Sets `fair_rate` of every group and the ports that were full when it got it, and what is `left` of every port."""
    for group in groups:
        group.fair_rate = 0
    waiting: list[ActiveLink] = []
    for port in ports:
        port.left, port.waits = port.capacity, port.flows
        if port.waits:
            waiting.append(port)
    while waiting:
        shares = [port.left // port.waits for port in waiting]
        share = min(shares)
        full = tuple([port for port, least in zip(waiting, shares, strict=True) if least == share])
        for port in full:
            if port.waits:
                _settle(port, share, full)
        waiting = [port for port in waiting if port.waits]


def _settle(bottleneck: ActiveLink, share: int, full: tuple[ActiveLink, ...]) -> None:
    """Gives the share to the groups of a port that have no rate yet, and takes it from the ports that they cross."""
    for group in bottleneck.crossings:
        if not group.fair_rate:
            group.fair_rate = share
            group.full = full if len(full) == 1 else tuple([port for port in group.ports if port in full])
            flows, taken = group.flows, share * group.flows
            for port in group.ports:
                port.left -= taken
                port.waits -= flows
