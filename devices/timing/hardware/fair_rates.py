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
    if len(ports) == len(groups) == 1 and ports[0].flows == groups[0].flows:  # as below, but quicker: it is frequent
        (port,), (group,) = ports, groups
        group.fair_rate, group.full = port.capacity // port.flows, group.ports
        port.left, port.is_full = port.capacity % port.flows, True
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
    whole = set(ports).difference(partial)
    _fill(ports)
    for port in ports:
        port.is_full = port.left < port.flows
    full = [port for port in partial if port.is_full]
    return [port for port in ports if port in whole or port.is_full] if full else []


def _fill(ports: list[ActiveLink]) -> None:
    """Gives rates to the groups without one on ports."""
    waiting = [port for port in ports if port.waits]
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
