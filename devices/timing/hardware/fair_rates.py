"""Max-min fair rates of groups of flows, by progressive filling in integers.

The rates are those of `flows`, which the tests compare with: the port that can give the least share gives it to its
flows, what they take is taken from their other ports, and the rest is shared in the same way. A share is rounded down.
There are few groups and ports in a search: plain loops beat numpy below a hundred.
"""

from __future__ import annotations

from collections.abc import Iterable

from .flow_groups import FlowGroup
from .ports import ActiveLink


def joined(
    wide: Iterable[ActiveLink], changed: Iterable[FlowGroup], mark: int
) -> tuple[list[ActiveLink], list[FlowGroup]]:
    """The groups that full ports join to some changed ones, or to those on some `wide` ports; and all their ports.

    All groups on a wide or full port are among them. `mark` is new for each search.
    """
    ports: list[ActiveLink] = []
    groups: list[FlowGroup] = []
    for port in wide:
        port.mark = mark
        ports.append(port)
        for group in port.crossings:
            if group.mark != mark:
                group.mark = mark
                groups.append(group)
    for group in changed:
        if group.mark != mark and group.flows:
            group.mark = mark
            groups.append(group)
    for group in groups:  # grows while it is read
        for port in group.ports:
            if port.mark != mark:
                port.mark = mark
                ports.append(port)
                if port.is_full:
                    for other in port.crossings:
                        if other.mark != mark:
                            other.mark = mark
                            groups.append(other)
    return ports, groups


def find_fair_rates(ports: list[ActiveLink], groups: list[FlowGroup], mark: int) -> list[ActiveLink]:
    """Sets `fair_rate` of the groups of the search `mark`, what was full when they got it, and `is_full` of ports.

    Groups that the search has left out keep their rates. If one of them is on a port that is full now, the rates may be
    wrong, and the search has to be made again, wider: returns the ports for that.
    """
    if len(groups) == 1 and _find_one_rate(ports, groups[0]):
        return []
    for group in groups:
        group.fair_rate = 0
    partial: list[ActiveLink] = []
    for port in ports:
        port.left, port.waits = port.capacity, port.flows
        if not port.is_full:
            for group, crossing in port.crossings.items():
                if group.mark != mark:
                    port.left -= crossing.count * group.rate
                    port.waits -= crossing.count
            if port.waits != port.flows:
                partial.append(port)
    _fill(ports)
    for port in ports:
        port.is_full = port.left < port.flows
    for port in partial:
        if port.is_full:
            return [port for port in ports if port.is_full or port not in partial]
    return []


def _find_one_rate(ports: list[ActiveLink], group: FlowGroup) -> bool:
    """The same for the only group of a search, if no other one is on its ports; False if there is one."""
    flows = group.flows
    if [port for port in ports if port.flows != flows]:
        return False
    group.fair_rate = rate = min([port.capacity for port in ports]) // flows
    taken = rate * flows
    for port in ports:
        port.left = left = port.capacity - taken
        port.is_full = left < flows
    group.full = tuple([port for port in group.ports if port.is_full])
    return True


def _fill(ports: list[ActiveLink]) -> None:
    """Gives rates to the groups without one on ports."""
    waiting = [port for port in ports if port.waits]
    while waiting:
        least, full = -1, list[ActiveLink]()
        for port in waiting:
            share = port.left // port.waits
            if share < least or least < 0:
                least, full = share, [port]
            elif share == least:
                full.append(port)
        _settle(full, least)
        waiting = [port for port in waiting if port.waits]


def _settle(full: list[ActiveLink], share: int) -> None:
    """Gives the share to the groups of full ports without a rate, and takes it from the ports that they cross."""
    for bottleneck in full:
        if not bottleneck.waits:
            continue
        only = tuple(full) if len(full) == 1 else ()
        for group in bottleneck.crossings:
            if not group.fair_rate:
                group.fair_rate = share
                group.full = only or tuple([port for port in group.ports if port in full])
                flows, taken = group.flows, share * group.flows
                for port in group.ports:
                    port.left -= taken
                    port.waits -= flows
