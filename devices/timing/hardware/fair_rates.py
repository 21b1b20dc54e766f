"""Max-min fair rates of groups of flows, by progressive filling in integers.

The rates are those of `flows`, which the tests compare with: the port that can give the least share gives it to its
flows, what they take is taken from their other ports, and the rest is shared in the same way. A share is rounded down.
There are few groups and ports in a search: plain loops beat numpy below a hundred.
"""

from __future__ import annotations

from collections.abc import Iterable

from .flow_groups import FlowGroup
from .ports import ActiveLink


class Search:
    """What a change can reach: groups and all their ports. `mark` is new for each search.

    Rates below `level` cannot change, and groups that have one are left out, but for those that have changed. Another
    group is in it if a full port or one of some `wide` ports joins it to the change.
    """

    __slots__ = ("groups", "level", "mark", "passed", "ports")

    def __init__(self, wide: Iterable[ActiveLink], changed: Iterable[FlowGroup], mark: int, level: int) -> None:
        self.mark, self.level = mark, level
        self.ports: list[ActiveLink] = []
        self.groups = [group for group in changed if group.flows]
        self.passed: list[ActiveLink] = []  # ports where groups may be that are left out as no full port joins them
        for group in self.groups:
            group.mark = mark
        for port in wide:
            self._come_to(port)
            self._spread(port)
        for group in self.groups:  # grows while it is read
            for port in group.ports:
                if port.mark != mark:
                    self._come_to(port)
                    if port.is_full:
                        self._spread(port)
                    else:
                        self.passed.append(port)

    def _come_to(self, port: ActiveLink) -> None:
        port.mark = self.mark
        port.left, port.waits = port.capacity, port.flows
        self.ports.append(port)

    def _spread(self, port: ActiveLink) -> None:
        """The groups of a port are in it, if their rates are not below the level."""
        mark, level, groups = self.mark, self.level, self.groups
        for group, crossing in port.crossings.items():
            if group.mark != mark:
                if group.rate >= level:
                    group.mark = mark
                    groups.append(group)
                else:
                    port.left -= crossing.count * group.rate
                    port.waits -= crossing.count


def find_fair_rates(search: Search) -> list[ActiveLink]:
    """Sets `fair_rate` of the groups of a search, what was full when they got it, and `is_full` of ports.

    Groups that the search has left out keep their rates. If one of them, not below the level, is on a port that is full
    now, the rates may be wrong, and the search has to be made again, wider: returns the ports for that.
    """
    ports, groups = search.ports, search.groups
    for group in groups:
        group.fair_rate = 0
    partial = [port for port in search.passed if _keeps_rates(port, search)]
    _fill(ports)
    for port in ports:
        port.is_full = port.left < port.flows
    for port in partial:
        if port.is_full:
            return [port for port in ports if port.is_full or port not in partial]
    return []


def _keeps_rates(port: ActiveLink, search: Search) -> bool:
    """Takes from a port what groups have there that are not in the search; whether a rate is not below its level."""
    keeps = False
    for group, crossing in port.crossings.items():
        if group.mark != search.mark:
            port.left -= crossing.count * group.rate
            port.waits -= crossing.count
            keeps = keeps or group.rate >= search.level
    return keeps


def has_ports_for_itself(group: FlowGroup) -> bool:
    """Whether no other group is on the ports of a group."""
    if group.is_weighted:
        return not [port for port in group.ports if port.flows != group.crossings[port].count]
    flows = group.flows
    return not [port for port in group.ports if port.flows != flows]


def find_one_rate(group: FlowGroup) -> None:
    """The same for a group that has its ports for itself."""
    flows, ports = group.flows, group.ports
    if group.is_weighted:
        _find_weighted_rate(group)
        return
    group.fair_rate = rate = min([port.capacity for port in ports]) // flows
    taken = rate * flows
    for port in ports:
        port.left = left = port.capacity - taken
        port.is_full = left < flows
    group.full = ports if len(ports) == 1 else tuple([port for port in ports if port.is_full])


def _find_weighted_rate(group: FlowGroup) -> None:
    """The same, where the group has another number of flows on each of its ports."""
    group.fair_rate = rate = min([port.capacity // port.flows for port in group.ports])
    for port in group.ports:
        port.left = left = port.capacity - rate * port.flows
        port.is_full = left < port.flows
    group.full = tuple([port for port in group.ports if port.is_full])


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
                if group.is_weighted:
                    for port in group.ports:
                        flows = group.crossings[port].count
                        port.left -= share * flows
                        port.waits -= flows
                    continue
                flows, taken = group.flows, share * group.flows
                for port in group.ports:
                    port.left -= taken
                    port.waits -= flows
