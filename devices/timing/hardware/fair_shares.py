"""Keeps the rates of all flows max-min fair as flows come and go, by looking only where a rate can change.

A flow that is alone on its ports has its rate at once. Others are few, or in groups:

    few       where few paths are joined, their rates are found from scratch, path by path (see `few_paths`)
    groups    a search finds the groups (see `grouping`) that full ports join to the change, and their fair rates; it is
              made wider if another port that it comes to would be full

There are two ways since none is quick everywhere: sixteen flows between eight hosts take two thirds of the time that
groups of them take, fifty flows into one port four times as much. A component goes into groups when it has too many
paths, and stays in them until its ports are idle.

In groups, rates below a level stay as they are: progressive filling comes to them before it comes to the change. If
flows have ended, it is the least of their rates. If some have begun, none of them gets less than its part of a port
that it shares equally with all flows there.

    port of 12 with flows of 2, 2 and 8    the one of 8 ends: what 2 limits elsewhere is not looked at

The rates are exactly those of a search over all flows: a port with room for one more unit of rate a flow gives no flow
its rate, and all flows over the other ports, from the level on, are in the search.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence

from .fair_rates import Search, find_fair_rates, find_one_rate, has_ports_for_itself
from .few_paths import FewPaths, components, joined_to
from .flow_groups import ActiveFlow, FlowGroup, Path
from .grouping import PathGrouping, divide, has_groups, is_crowded
from .port_loads import PortLoads
from .ports import ActiveLink
from .ties import Ties, unite

_FEW = 8  # flows that begin at once, for which it pays to know the least rate that they can have
_TOP = 1 << 200  # above all rates


class FairShares:
    """The flows that are under way, and their rates as of the last `find`."""

    def __init__(self) -> None:
        self.instants = array("q")
        """by search: when it was"""
        self.needs_search = False
        """whether rates have to be found"""
        self._at = -1  # the instant of the last search, while more may belong to it
        self._changed: list[ActiveLink] = []  # where flows came or went in it
        self._alone: list[Path] = []  # whose only flow began in it
        self._left: dict[Path, None] = {}  # paths of groups where flows have ended
        self._repaced: list[ActiveLink] = []  # with another capacity
        self._begun: list[ActiveFlow] = []
        self.loads = PortLoads()
        self._few = FewPaths(self.loads.records)
        self.ends_of_few = self._few.ends
        self._flows = 0  # that have begun so far
        self._level = _TOP  # rates below it do not change
        self._ties = Ties()
        self._grouping = PathGrouping(self._ties, self.loads.records)
        self._mark = 0

    @property
    def searches(self) -> int:
        """How many searches have been made: not the one that needs to be."""
        return len(self.instants) - self.needs_search

    def close(self) -> None:
        """What happens from now on belongs to another search, if it is in the same instant too."""
        self._at = -1

    def begin(self, flow: ActiveFlow, now: int) -> None:
        """The first byte of a flow moves now. If it is alone on its ports it has its rate at once."""
        if now != self._at:
            self._open(now)
        self._flows += 1
        flow.number, flow.began_ns = self._flows, now
        path = flow.path
        self._changed += path.ports
        if self.needs_search or path.counts or sum([port.flows for port in path.ports]):
            self._begun.append(flow)
            self.needs_search = True
        else:
            self._few.start_alone(flow, self._changed, now, self._grouping.search)
            self._alone.append(path)

    def end(self, flow: ActiveFlow, now: int) -> None:
        """The last byte of a flow has arrived, which its path or group has taken out."""
        if now != self._at:
            self._open(now)
        path, group = flow.path, flow.path.group
        self._changed += path.ports
        if group is None:
            if self._few.end(flow, self._grouping.search):
                self.needs_search = True
            return
        self.needs_search = True
        del path.flows[flow]
        if group.rate < self._level:
            self._level = group.rate
        self._grouping.count(path, -1)
        self._left[path] = None

    def repace(self, port: ActiveLink, now: int) -> None:
        """The capacity of a port with flows has changed."""
        if now != self._at:
            self._open(now)
        self.needs_search = True
        self._changed.append(port)
        if not port.few:
            self._repaced.append(port)
            self._level = 0

    def _open(self, now: int) -> None:
        """What happens belongs to a search of another instant."""
        self._at = now
        self._changed, self._alone = [], []
        self._grouping.search = len(self.instants)
        self.instants.append(now)

    def find(self, now: int) -> Iterable[FlowGroup]:
        """Finds the rates from now on; returns the groups whose next end may be another one."""
        grouping = self._grouping
        for path in self._alone:
            path.limits.clear()  # which the search finds
        seeds = self._place(now)
        for port in self._changed:
            if port.few:
                self._find_few(now)
                break
        if seeds or grouping.touched or grouping.unchecked:
            self._find_groups(seeds, now)
        self._level = _TOP
        self._repaced.clear()
        for flow in self._begun:
            path = flow.path
            flow.first_limit = len(path.limits if path.group is None else path.limits_until_now()) - 1
        self._begun.clear()
        self.needs_search = False
        self.close()
        touched, grouping.touched = grouping.touched, {}
        return touched

    def _place(self, now: int) -> dict[ActiveLink, None]:
        """Puts flows on their paths, and paths into groups or out of theirs; returns where groups may get more."""
        fresh: dict[Path, None] = {}
        for flow in self._begun:
            path = flow.path
            if path.group is not None:
                self._grouping.place(flow, now)
            elif not path.counts and not has_groups(path):
                self._few.place(flow, now)
            else:
                self._grouping.place(flow, now)
                fresh[path] = None
        seeds = self._drop_paths() if self._left else {}
        for path in fresh:
            for port in path.ports:
                if port.few:
                    self._mark += 1
                    self._group(joined_to(path.ports, self._mark).paths, now)
            self._join(path, now, 0, is_crowded=is_crowded(path))
        for port in self._repaced:
            (seeds if port.is_watched else self._grouping.unchecked)[port] = None
        return seeds

    def _drop_paths(self) -> dict[ActiveLink, None]:
        """Takes paths without flows out of their groups; returns the watched ports that a group has left for good."""
        seeds: dict[ActiveLink, None] = {}
        for path in self._left:
            group = path.group
            if not path.flows and group is not None:
                self._grouping.drop(path)
                if not group.flows:
                    seeds.update(dict.fromkeys([port for port in group.ports if port.is_full or not port.flows]))
        self._left.clear()
        return seeds

    def _find_few(self, now: int) -> None:
        """Finds the rates of components with few paths where something has changed; others go into groups."""
        search = self._grouping.search
        self._mark += 1
        joined = joined_to(self._changed, self._mark)
        if joined.are_few:
            self._few.find(joined, now, search)
            return
        for part in components(joined):
            if part.are_few:
                self._few.find(part, now, search)
            else:
                self._group(part.paths, now)

    def _group(self, paths: Sequence[Path], now: int) -> None:
        """Puts the paths of a component into groups, each as far as it has come."""
        crowded = [is_crowded(path) for path in paths]
        self._few.give_up(paths, now, self._grouping.search)
        for path, crowd in zip(paths, crowded, strict=True):
            self._join(path, now, path.virtual, is_crowded=crowd)

    def _join(self, path: Path, now: int, virtual: int, *, is_crowded: bool) -> None:
        grouping = self._grouping
        unite(path.ports)
        grouping.join(path, grouping.choose(path, now, is_crowded=is_crowded), now, virtual)

    def _find_groups(self, seeds: dict[ActiveLink, None], now: int) -> None:
        """Finds the rates of groups."""
        grouping = self._grouping
        if seeds or len(grouping.touched) > 1 or not self._find_share(now):
            settled: dict[FlowGroup, None] = {}
            self._solve(seeds, settled, now)
            if settled or self._ties.groups:
                self._mark += 1
                self._ties.decide(settled, self._changed, self._mark, now)
        for path in grouping.joined:
            if path.group is not None:
                path.take_limit_of_group(now)
        grouping.joined.clear()

    def _find_share(self, now: int) -> bool:
        """Finds the rate of the only group that changes, if nothing does but its share of the one port that limits it.

        As `_solve` does, but quicker: it is frequent.
        """
        grouping = self._grouping
        for group in grouping.touched:
            port, flows = group.ports[0], group.flows
            if port.flows != flows or group.limit is not port or not flows or len(group.ports) > 1 or self._ties.groups:
                return False
            rate = port.capacity // flows
            bounds = group.bounds
            if bounds and bounds[0][0] < rate:
                return False
            if rate != group.rate:
                group.take_rate(rate, now, grouping.search)
        for port in grouping.unchecked:
            if not divide(port):
                return False
        grouping.unchecked.clear()
        return True

    def _least_change(self) -> int:
        """The least rate that may be another one, or may be that of a flow that has begun."""
        # Paths that change groups are in the search whatever their rates: so are all that share ports with them.
        if self._grouping.has_moved or len(self._begun) > _FEW:
            return 0
        begun = [flow.path for flow in self._begun]
        shares = [port.capacity // port.flows for path in begun if path.group is not None for port in path.ports]
        return min([self._level, *shares])

    def _solve(self, seeds: Iterable[ActiveLink], settled: dict[FlowGroup, None], now: int) -> None:
        """Finds rates until no port that is not watched could be full; `settled` gets the groups with another limit."""
        grouping, wide = self._grouping, dict.fromkeys(seeds)
        while True:
            groups: Sequence[FlowGroup] = [*grouping.touched]
            if len(groups) == 1 and not wide and has_ports_for_itself(groups[0]):
                find_one_rate(groups[0])  # as below, but quicker: it is frequent
                ports: Sequence[ActiveLink] = groups[0].ports
            else:
                self._mark += 1
                search = Search(wide, groups, self._mark, self._least_change())
                groups, ports = search.groups, search.ports
                wider = find_fair_rates(search)
                if wider:
                    wide.update(dict.fromkeys(wider))
                    continue
            risen = self._take_rates(groups, settled, now)
            full = grouping.full_ports(risen) if risen or grouping.unchecked else []
            if not full:
                break
            for port in full:
                grouping.watch(port, now)
                wide[port] = None
        for port in ports:
            if not port.flows:
                port.is_watched = port.is_full = False
            elif 2 * port.left > port.capacity and is_crowded(next(iter(port.paths))):
                settled.update(dict.fromkeys(grouping.let_go(port, now)))
                grouping.full_ports(())
        grouping.has_moved = False

    def _take_rates(self, groups: Iterable[FlowGroup], settled: dict[FlowGroup, None], now: int) -> list[FlowGroup]:
        """Groups have their fair rates from now on; returns those with more that have ports which are not watched."""
        search, risen, touched = self._grouping.search, list[FlowGroup](), self._grouping.touched
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
