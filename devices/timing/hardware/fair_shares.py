"""Keeps the rates of all flows max-min fair as flows come and go, by looking only where a rate can change.

Only a full port limits anybody. Ports that may be full are *watched*; paths that cross the same watched ports form a
group, and have one rate. When flows come or go, a search finds the groups that full ports join to the change, and their
fair rates; it is made wider if another port that it comes to would be full. A flow that is alone on its ports is in no
group until somebody comes (see `lone_flows`).

    64 GPUs send to one: its port is watched, the 64 ports of the others are not. One group, one rate, one addition.

Of the ports that are not watched the groups know up to which rate they cannot be full (`Crossing.allowed`). A group
that gets more asks the port, which divides anew what is left of it; if nothing is, the port is watched from now on, the
paths over it form other groups, and the search is made again. A port of which less than half is used is let go.

The rates are exactly those of a search over all flows: a port with room for one more unit of rate a flow gives no flow
its rate, and all flows over the other ports are in the search.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from heapq import heappop, heappush

from .fair_rates import find_fair_rates, joined
from .flow_groups import ActiveFlow, FlowGroup, Path
from .lone_flows import LoneFlows, is_idle
from .ports import ActiveLink, Crossing
from .ties import tie, tied_limits, unite, untie

_FEW = 8  # groups on a port, or flows, are so few that it takes longer to unite them than to find their rates


class FairShares:
    """The flows that are under way, and their rates as of the last `find`."""

    def __init__(self) -> None:
        self.instants = array("q")
        """by search: when it was"""
        self._groups: dict[tuple[ActiveLink, ...], FlowGroup] = {}
        self._changed: list[ActiveLink] = []  # where flows came or went since the last search
        self._left: dict[Path, None] = {}  # paths of groups where flows have ended
        self._repaced: list[ActiveLink] = []  # with another capacity
        self._begun: list[ActiveFlow] = []
        self._regrouped: list[Path] = []
        self._lone = LoneFlows()
        self._adopted: list[FlowGroup] = []  # groups of what have been lone flows
        self.lone_ends: list[tuple[int, ActiveFlow]] = []
        """of lone flows that the last search has found: when they end, if they stay alone"""
        self._unchecked: dict[ActiveLink, None] = {}  # ports that more flows cross, or other groups
        self._flows = 0  # that have begun so far
        self._touched: dict[FlowGroup, None] = {}  # groups whose next end may be another one
        self._tied = 0  # groups that several ports limit
        self._mark = 0

    @property
    def has_changes(self) -> bool:
        """Whether rates have to be found."""
        return bool(self._changed)

    def begin(self, flow: ActiveFlow, now: int) -> None:
        """The first byte of a flow moves now."""
        self._flows += 1
        flow.number, flow.began_ns = self._flows, now
        self._begun.append(flow)
        self._changed += flow.path.ports

    def end(self, flow: ActiveFlow) -> None:
        """The last byte of a flow has arrived: a lone one, or one that its group has taken out."""
        path = flow.path
        self._changed += path.ports
        del path.flows[flow]
        if path.rate:
            self._lone.take_out(path, len(self.instants))
            path.limits.clear()
        else:
            self._count(path, -1)
            self._left[path] = None

    def repace(self, port: ActiveLink) -> None:
        """The capacity of a port has changed."""
        self._changed.append(port)
        self._repaced.append(port)

    def find(self, now: int) -> Iterable[FlowGroup]:
        """Finds the rates from now on; returns the groups whose next end may be another one."""
        begun = self._begun
        if len(begun) == 1 and not self._left and not self._repaced and is_idle(begun[0].path):
            self._start_alone(begun[0], now)  # as below, but quicker: it is frequent
        elif begun or self._left or self._repaced:
            self._search(now)
        self._changed.clear()
        self._begun.clear()
        touched, self._touched = self._touched, {}
        self.instants.append(now)
        return touched

    def _search(self, now: int) -> None:
        seeds = self._seeds(now)
        settled = dict.fromkeys(self._adopted)
        if seeds or self._touched or self._unchecked:
            self._solve(seeds, settled, now)
        self._decide_limits(settled, now)
        for path in self._regrouped:
            self._take_limit(path, now)
        for flow in self._begun:
            flow.first_limit = len(flow.path.limits_until_now()) - 1
        self._left.clear()
        self._repaced.clear()
        self._regrouped.clear()
        self._adopted.clear()

    def _place(self, flow: ActiveFlow, now: int) -> None:
        """Puts a flow on its path, which has no lone one."""
        path, group = flow.path, flow.path.group
        path.flows[flow] = None
        if group is None:
            heappush(path.ends, (flow.work, flow.number, flow))
            return
        heappush(path.ends, (group.virtual_at(now) + path.offset + flow.work, flow.number, flow))
        self._count(path, 1)
        if path.ends[0][2] is flow:
            group.note_end(path)

    def _count(self, path: Path, flows: int) -> None:
        """As many more flows take a path of a group."""
        group, search = path.group, len(self.instants)
        assert group is not None  # as the caller knows
        group.flows += flows
        self._touched[group] = None
        for crossing in path.crossings:
            port = crossing.port
            crossing.count = count = crossing.count + flows
            port.flows += flows
            port.changed_in.append(search)
            port.changed_groups.append(group)
            port.changed_counts.append(count)
            if flows > 0 and not port.is_watched:
                self._unchecked[port] = None

    def _seeds(self, now: int) -> dict[ActiveLink, None]:
        """The watched ports that a group has left for good; paths are put into groups, or taken out of theirs."""
        seeds: dict[ActiveLink, None] = {}
        fresh: dict[Path, None] = {}
        for flow in self._begun:
            path = flow.path
            if path.rate:
                self._adopt(path, now)
            self._place(flow, now)
            if path.group is None:
                fresh[path] = None
        for path in self._left:
            group = path.group
            if not path.flows and group is not None:
                self._leave(path)
                path.limits.clear()
                if not group.flows:
                    seeds.update(dict.fromkeys([port for port in group.ports if port.is_full or not port.flows]))
        for path in fresh:
            if len(path.flows) == 1 and is_idle(path):
                self._start_alone(path.ends.pop()[2], now)
                for port in path.ports:
                    seeds.pop(port, None)
            else:
                self._first_group(path, now)
        for port in self._repaced:
            (seeds if port.is_watched else self._unchecked)[port] = None
        return seeds

    def _start_alone(self, flow: ActiveFlow, now: int) -> None:
        end = self._lone.start(flow, self._changed, now, len(self.instants))
        self.lone_ends.append((end, flow))

    def _adopt(self, path: Path, now: int) -> None:
        """Puts a path with a lone flow into a group, as somebody comes to its ports."""
        (flow,) = path.flows
        flow.entry = 0
        rate, search = path.rate, len(self.instants)
        self._lone.take_out(path, search)
        heappush(path.ends, (flow.work, flow.number, flow))
        unite(path.ports)
        for port in path.ports:
            port.is_watched = True
            port.paths[path] = None
        for port in path.full:
            port.is_full = True
        group = self._join(path, path.ports, now, rate * (now - flow.began_ns))
        group.take_rate(rate, now, search)
        group.full = path.full
        group.take_limit(path.limits[-1][1], now)
        path.seen = 1
        self._adopted.append(group)

    # Groups

    def _first_group(self, path: Path, now: int) -> FlowGroup:
        """Puts a path into the group of its watched ports, one at least."""
        ports = path.ports
        for port in ports:
            if port.lone is not None:
                self._adopt(port.lone, now)
        unite(ports)
        if not _is_crowded(path):
            for port in ports:
                if not port.flows:
                    port.is_watched = True
        watched = tuple([port for port in ports if port.is_watched])
        if not watched:
            flows = len(path.flows)
            shares = [(port.capacity - port.load()) // (port.flows + flows) for port in ports]
            least = min(shares)
            watched = tuple([port for port, share in zip(ports, shares, strict=True) if share == least])
            for port in watched:
                self._watch(port, now)
        for port in ports:
            port.paths[path] = None
        return self._join(path, watched, now, 0)

    def _join(self, path: Path, ports: tuple[ActiveLink, ...], now: int, virtual: int) -> FlowGroup:
        """Puts a path into the group of some watched ports; its virtual time goes on from `virtual`."""
        group = self._groups.get(ports)
        if group is None:
            group = self._groups[ports] = FlowGroup(ports)
        path.group, path.offset = group, virtual - group.virtual_at(now)
        path.crossings = [_crossing(group, port) for port in path.ports]
        path.seen = len(group.limits)
        group.paths += 1
        self._count(path, len(path.flows))
        group.note_end(path)
        self._regrouped.append(path)
        return group

    def _leave(self, path: Path) -> None:
        """Takes a path out of its group."""
        group = path.group
        assert group is not None  # as the caller knows
        path.limits_until_now()
        if path.flows:
            self._count(path, -len(path.flows))
        else:
            for port in path.ports:
                del port.paths[path]
        self._touched[group] = None
        for crossing in path.crossings:
            if not crossing.count:
                crossing.port.crossings.pop(group, None)
                group.crossings.pop(crossing.port, None)
        path.group, path.crossings = None, []
        group.paths -= 1
        if not group.flows:
            if group.is_tied:
                self._untie(group)
            group.stop()

    def _regroup(self, path: Path, now: int) -> FlowGroup:
        """Puts a path into the group of its ports that are watched now."""
        virtual = path.virtual_at(now)
        self._leave(path)
        return self._join(path, tuple([port for port in path.ports if port.is_watched]), now, virtual)

    def _watch(self, port: ActiveLink, now: int) -> None:
        port.is_watched = True
        for path in port.paths:
            self._regroup(path, now)

    def _let_go(self, port: ActiveLink, now: int) -> list[FlowGroup]:
        """Watches a port no more, at which no group has got its rate; returns the groups of its paths."""
        port.is_watched = port.is_full = False
        groups: list[FlowGroup] = []
        for path in port.paths:
            before = path.group
            assert before is not None  # as it has flows
            group = self._regroup(path, now)
            if group.rate != before.rate:
                group.take_rate(before.rate, now, len(self.instants))
            group.full = before.full
            groups.append(group)
        self._unchecked[port] = None
        return groups

    # Rates

    def _solve(self, seeds: Iterable[ActiveLink], settled: dict[FlowGroup, None], now: int) -> None:
        """Finds rates until no port that is not watched could be full; `settled` gets the groups with another limit."""
        wide = dict.fromkeys(seeds)
        while True:
            self._mark += 1
            ports, groups = joined(wide, self._touched, self._mark)
            wider = find_fair_rates(ports, groups, self._mark)
            if wider:
                wide.update(dict.fromkeys(wider))
                continue
            risen = self._take_rates(groups, settled, now)
            full = self._full_ports(risen) if risen or self._unchecked else []
            if not full:
                break
            for port in full:
                self._watch(port, now)
                wide[port] = None
        for port in ports:
            if not port.flows:
                port.is_watched = port.is_full = False
            elif len(groups) > _FEW and 2 * port.left > port.capacity and _is_crowded(next(iter(port.paths))):
                settled.update(dict.fromkeys(self._let_go(port, now)))
                self._full_ports(())

    def _take_rates(self, groups: Iterable[FlowGroup], settled: dict[FlowGroup, None], now: int) -> list[FlowGroup]:
        """Groups have their fair rates from now on; returns those with more that have ports which are not watched."""
        search, risen, touched = len(self.instants), list[FlowGroup](), self._touched
        for group in groups:
            rate = group.fair_rate
            if rate != group.rate:
                if group.bounds and rate > group.rate:
                    risen.append(group)
                group.take_rate(rate, now, search)
                touched[group] = None
            full = group.full
            if len(full) > 1 or group.is_tied or full[0] is not group.limit:
                settled[group] = None
        return risen

    def _full_ports(self, risen: Iterable[FlowGroup]) -> list[ActiveLink]:
        """The ports that are not watched and could be full, as more flows cross them or groups have got more."""
        full: dict[ActiveLink, None] = {}
        if self._unchecked:
            full = {port: None for port in self._unchecked if not port.is_watched and not _divide(port)}
            self._unchecked.clear()
        for group in risen:
            bounds, rate = group.bounds, group.rate
            while bounds and bounds[0][0] < rate:
                allowed, _, crossing = heappop(bounds)
                if allowed != crossing.bound or not crossing.count or crossing.port.is_watched:
                    continue
                crossing.bound = -1
                if crossing.allowed >= rate:
                    group.note_bound(crossing)
                elif not _divide(crossing.port):
                    full[crossing.port] = None
        return list(full)

    # What limits whom

    def _decide_limits(self, settled: Iterable[FlowGroup], now: int) -> None:
        for group in settled:
            if not group.flows:
                continue
            if len(group.full) > 1:
                if not group.is_tied:
                    self._tied += 1
                    tie(group)
                continue
            if group.is_tied:
                self._untie(group)
            group.take_limit(group.full[0], now)
        if self._tied:
            self._mark += 1
            for group, port in tied_limits(self._changed, self._mark):
                group.take_limit(port, now)

    def _untie(self, group: FlowGroup) -> None:
        self._tied -= 1
        untie(group)

    def _take_limit(self, path: Path, now: int) -> None:
        """A path that has come into a group is limited by what limits that."""
        group = path.group
        if group is None:
            return
        limit = group.limits[-1][1]
        if not path.limits or path.limits[-1][1] is not limit:
            path.limits.append((now, limit))
        path.seen = len(group.limits)


def _is_crowded(path: Path) -> bool:
    """Whether many flows cross a port of a path: it is better then not to watch those that are not full."""
    return any(port.flows > _FEW for port in path.ports)


def _crossing(group: FlowGroup, port: ActiveLink) -> Crossing:
    """The crossing of a group and a port."""
    crossing = group.crossings.get(port)
    if crossing is None:
        crossing = group.crossings[port] = port.crossings[group] = Crossing(group, port)
    return crossing


def _divide(port: ActiveLink) -> bool:
    """Divides what is left of a port that is not watched between its flows; False if it could be full."""
    if not port.flows:
        return True
    spare = port.capacity - port.load() - port.flows
    if spare < 0:
        return False
    more = spare // port.flows
    for crossing in port.crossings.values():
        crossing.allowed = allowed = crossing.group.rate + more
        if crossing.bound < 0 or allowed < crossing.bound:
            crossing.group.note_bound(crossing)
    return True
