"""Which path is in which group, how many flows cross which port, and which ports are watched.

Only a full port limits anybody. Ports that may be full are *watched*; paths that cross the same watched ports form a
group, and have one rate.

    64 GPUs send to one: its port is watched, the 64 ports of the others are not. One group, one rate, one addition.
    a few flows over a few ports: all are watched, so that paths stay in their groups whatever becomes full

Of the ports that are not watched the groups know up to which rate they cannot be full (`Crossing.allowed`). A group
that gets more asks the port, which divides anew what is left of it; if nothing is, the port is watched from now on, and
the paths over it form other groups. A port of a crowded path, of which less than half is used, is let go.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

from .flow_groups import ActiveFlow, FlowGroup, Path
from .port_loads import LoadRecord
from .ports import ActiveLink, Crossing
from .ties import Ties

_FEW = 8  # flows on a port are so few that it takes longer to unite them than to find their rates


class PathGrouping:
    """The groups of paths with flows; `search` is the number of the search that follows."""

    def __init__(self, ties: Ties, records: list[LoadRecord]) -> None:
        """`records` gets what flows of groups cross a port."""
        self._records = records
        self.search = 0
        self.touched: dict[FlowGroup, None] = {}
        """groups whose rate or next end may be another one"""
        self.unchecked: dict[ActiveLink, None] = {}
        """ports that more flows cross, or other groups"""
        self.joined: list[Path] = []
        """paths that have come into a group since the last search"""
        self.has_moved = False
        """whether paths have changed groups since the last search"""
        self._groups: dict[tuple[ActiveLink, ...], FlowGroup] = {}
        self._ties = ties

    def place(self, flow: ActiveFlow, now: int) -> None:
        """Puts a flow on its path, which is in a group or is to be put into one."""
        path, group = flow.path, flow.path.group
        path.flows[flow] = None
        if group is None:
            heappush(path.ends, (flow.work, flow.number, flow))
            return
        heappush(path.ends, (group.virtual_at(now) + path.offset + flow.work, flow.number, flow))
        self.count(path, 1)
        if path.ends[0][2] is flow:
            group.note_end(path)

    def count(self, path: Path, flows: int) -> None:
        """As many more flows take a path of a group."""
        group = path.group
        assert group is not None  # as the caller knows
        group.flows += flows
        self.touched[group] = None
        counts, weight, search, records = path.counts, path.weight, self.search, self._records
        for index, crossing in enumerate(path.crossings):
            port = crossing.port
            more = flows * counts[index] if counts else flows
            port.flows += more
            crossing.count += more
            crossing.weight += more * weight
            records.append((port, search, group, crossing.weight))
            if more > 0 and not port.is_watched:
                self.unchecked[port] = None

    def choose(self, path: Path, now: int, *, is_crowded: bool) -> tuple[ActiveLink, ...]:
        """The watched ports of a path that is in no group, one at least; if it is not crowded also all idle ones."""
        ports = path.ports
        if not is_crowded:
            for port in ports:
                if not port.flows:
                    port.is_watched = True
        watched = tuple([port for port in ports if port.is_watched])
        if not watched:
            flows = len(path.flows)
            more = [flows * count for count in path.counts] or [flows] * len(ports)
            shares = [
                (port.capacity - port.load_of_groups()) // (port.flows + n) for port, n in zip(ports, more, strict=True)
            ]
            least = min(shares)
            watched = tuple([port for port, share in zip(ports, shares, strict=True) if share == least])
            for port in watched:
                self.watch(port, now)
        return watched

    def join(self, path: Path, ports: tuple[ActiveLink, ...], now: int, virtual: int) -> FlowGroup:
        """Puts a path into the group of some watched ports; its virtual time goes on from `virtual`."""
        group = self._groups.get(ports)
        if group is None:
            group = self._groups[ports] = FlowGroup(ports)
        for port in path.ports:
            port.paths[path] = None
        path.group, path.offset = group, virtual - group.virtual_at(now)
        path.crossings = [_crossing(group, port) for port in path.ports]
        path.seen = len(group.limits)
        group.is_weighted |= bool(path.counts)
        group.paths += 1
        self.count(path, len(path.flows))
        group.note_end(path)
        self.joined.append(path)
        return group

    def leave(self, path: Path) -> None:
        """Takes a path out of its group."""
        group = path.group
        assert group is not None  # as the caller knows
        path.limits_until_now()
        if path.flows:
            self.count(path, -len(path.flows))
        self.touched[group] = None
        for crossing in path.crossings:
            if not crossing.count:
                crossing.port.crossings.pop(group, None)
                group.crossings.pop(crossing.port, None)
        path.group, path.crossings = None, []
        group.paths -= 1
        if not group.flows:
            self._ties.untie(group)
            group.stop()

    def drop(self, path: Path) -> None:
        """Takes a path whose last flow has ended out of its group."""
        self.leave(path)
        path.stop()
        for port in path.ports:
            del port.paths[path]

    def _regroup(self, path: Path, now: int) -> FlowGroup:
        """Puts a path into the group of its ports that are watched now."""
        virtual = path.virtual_at(now)
        self.leave(path)
        return self.join(path, tuple([port for port in path.ports if port.is_watched]), now, virtual)

    def watch(self, port: ActiveLink, now: int) -> None:
        """A port that has flows may be full from now on."""
        port.is_watched = self.has_moved = True
        for path in port.paths:
            self._regroup(path, now)

    def let_go(self, port: ActiveLink, now: int) -> list[FlowGroup]:
        """Watches a port no more, at which no group has got its rate; returns the groups of its paths."""
        port.is_watched = port.is_full = False
        groups: list[FlowGroup] = []
        for path in port.paths:
            before = path.group
            assert before is not None  # as it has flows
            group = self._regroup(path, now)
            if group.rate != before.rate:
                group.take_rate(before.rate, now, self.search)
            group.full = before.full
            groups.append(group)
        self.unchecked[port] = None
        return groups

    def full_ports(self, risen: Iterable[FlowGroup]) -> list[ActiveLink]:
        """The ports that are not watched and could be full, as more flows cross them or groups have got more."""
        full: dict[ActiveLink, None] = {}
        if self.unchecked:
            full = {port: None for port in self.unchecked if not port.is_watched and not divide(port)}
            self.unchecked.clear()
        for group in risen:
            bounds, rate = group.bounds, group.rate
            while bounds and bounds[0][0] < rate:
                allowed, _, crossing = heappop(bounds)
                if allowed != crossing.bound or not crossing.count or crossing.port.is_watched:
                    continue
                crossing.bound = -1
                if crossing.allowed >= rate:
                    group.note_bound(crossing)
                elif not divide(crossing.port):
                    full[crossing.port] = None
        return list(full)


def is_crowded(path: Path) -> bool:
    """Whether many flows cross a port of a path: groups then pay."""
    return bool([port for port in path.ports if port.flows > _FEW])  # quicker than `any`


def has_groups(path: Path) -> bool:
    """Whether groups are on a port of a path."""
    return bool([port for port in path.ports if port.crossings])  # quicker than `any`


def _crossing(group: FlowGroup, port: ActiveLink) -> Crossing:
    """The crossing of a group and a port."""
    crossing = group.crossings.get(port)
    if crossing is None:
        crossing = group.crossings[port] = port.crossings[group] = Crossing(group, port)
    return crossing


def divide(port: ActiveLink) -> bool:
    """Divides what is left of a port that is not watched between its flows; False if it could be full."""
    if not port.flows:
        return True
    spare = port.capacity - port.load_of_groups() - port.flows
    if spare < 0:
        return False
    more = spare // port.flows
    for crossing in port.crossings.values():
        crossing.allowed = allowed = crossing.group.rate + more
        if crossing.bound < 0 or allowed < crossing.bound:
            crossing.group.note_bound(crossing)
    return True
