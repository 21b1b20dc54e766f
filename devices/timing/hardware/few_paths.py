"""Paths that are joined to few others: most transfers of most steps.

Ports that flows join are a *component*. While one has few paths, its rates are found path by path, from scratch, each
time that a flow comes or goes: that takes less than to keep what groups of paths know (see `grouping`). Many paths are
put into groups, of which a search looks at those alone that may change.

    a over ports 1, 2      b over 2, 3      c over 4       two components: where c ends, nobody looks at a and b
    d over 3, 4            begins: one component           its four paths get their rates

The search goes from the ports where flows came or went, by way of the flows that have begun first, as `ties` has it. So
the first of several full ports that it comes to is the one that limits a path.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heappush
from operator import attrgetter
from typing import NamedTuple

from .flow_groups import ActiveFlow, Path
from .port_loads import LoadRecord
from .ports import WHOLE, ActiveLink

MOST_PATHS, MOST_A_PORT = 32, 8  # of a component, and of one of its ports, that are not worth groups
_MORE = 1 << 200  # than any rate


class JoinedPaths(NamedTuple):
    """Ports that flows join, and the paths of these flows, in the order of a search."""

    ports: list[ActiveLink]
    paths: list[Path]

    @property
    def are_few(self) -> bool:
        """Whether groups of the paths would take longer."""
        paths = len(self.paths)
        if paths <= MOST_A_PORT or paths > MOST_PATHS:
            return paths <= MOST_PATHS
        return max([len(port.few) for port in self.ports]) <= MOST_A_PORT


class FewPaths:
    """The paths with flows that are in no group.

    Their ports know them (`few`, by the flow that began first), and have no groups.
    """

    def __init__(self, records: list[LoadRecord]) -> None:
        """`records` gets the loads that they make."""
        self._records = records
        self.ends: list[tuple[int, Path]] = []
        """paths whose next end is another one since somebody has cleared the list, and when it is"""
        self._are_weighted = False  # whether not all that some paths have of their ports is bytes

    def place(self, flow: ActiveFlow, now: int) -> None:
        """A flow begins on a path none of whose ports has groups."""
        path = flow.path
        if path.flows:
            heappush(path.ends, (path.virtual_at(now) + flow.work, flow.number, flow))
            path.entry = 0
            for port in path.ports:
                port.flows += 1
        else:
            path.oldest, path.since_ns = flow.number, now
            path.ends.append((flow.work, flow.number, flow))
            for port in path.ports:
                port.flows += 1
                port.few[path] = None
            if path.weight != WHOLE:
                self._are_weighted = True
        path.flows[flow] = None

    def start_alone(self, flow: ActiveFlow, changed: Sequence[ActiveLink], now: int, search: int) -> None:
        """The same, and its rate, for the only flow that begins, on ports without flows. It is frequent.

        `changed` is where the search starts.
        """
        path = flow.path
        limit = path.slowest
        if path.is_paced or len(changed) > len(path.ports):
            limit = min(sorted(path.ports, key=changed.index), key=_capacity)
        assert limit is not None  # as it has ports
        path.rate = rate = load = limit.capacity
        path.oldest, path.since_ns = flow.number, now
        path.ends.append((flow.work, flow.number, flow))
        path.flows[flow] = None
        path.limits.append((now, limit))
        flow.first_limit = 0
        if path.weight != WHOLE:
            self._are_weighted = True
            load = rate * path.weight // WHOLE
        records = self._records
        for port in path.ports:
            port.flows, port.load = 1, load
            port.few[path] = None
            records.append((port, search, None, load))
        self.ends.append((now - (-flow.work // rate), path))

    def end(self, flow: ActiveFlow, search: int) -> bool:
        """A flow has ended that its path has taken out of its ends; whether other flows are on its ports."""
        path = flow.path
        flows = path.flows
        del flows[flow]
        path.entry = 0
        if flows:
            for port in path.ports:
                port.flows -= 1
            if flow.number == path.oldest:
                self._find_oldest(path)
            return True
        path.stop()
        others = False
        for port in path.ports:
            del port.few[path]
            port.flows -= 1
            if port.flows:
                others = True
            else:
                port.load = 0
                self._records.append((port, search, None, 0))
        return others

    def _find_oldest(self, path: Path) -> None:
        """The oldest flow of a path has ended."""
        path.oldest = next(iter(path.flows)).number
        for port in path.ports:
            if len(port.few) > 1:
                port.few = dict.fromkeys(sorted(port.few, key=_oldest))

    def give_up(self, paths: Iterable[Path], now: int, search: int) -> None:
        """Whole components go into groups."""
        for path in paths:
            path.virtual, path.rate, path.entry = path.virtual_at(now), 0, 0
            flows = len(path.flows)
            for port in path.ports:
                port.flows -= flows
                del port.few[path]
                if port.load:
                    port.load = 0
                    self._records.append((port, search, None, 0))

    def find(self, joined: JoinedPaths, now: int, search: int) -> None:
        """Finds the rates of components."""
        ports, paths = joined
        if len(paths) == 1:
            _find_one_rate(paths[0], ports)
        else:
            _fill(ports)
        ends = self.ends
        for path in paths:
            limits, limit, rate, before = path.limits, path.limit, path.fair_rate, path.rate
            if limit is not None and (not limits or limits[-1][1] is not limit):
                limits.append((now, limit))
            if rate != before:
                path.virtual = virtual = path.virtual + before * (now - path.since_ns)
                path.since_ns, path.rate = now, rate
                ends.append((now - (virtual - path.ends[0][0]) // rate, path))
            elif not path.entry:
                ends.append((path.since_ns - (path.virtual - path.ends[0][0]) // rate, path))
        unused = _unused(paths) if self._are_weighted else None
        for port in ports:
            load = port.capacity - port.left
            if unused:
                load -= unused.get(port, 0) // WHOLE
            if load != port.load:
                port.load = load
                self._records.append((port, search, None, load))


def joined_to(starts: Iterable[ActiveLink], mark: int) -> JoinedPaths:
    """All that flows in no group join to some ports; `mark` is new for each search.

    What is left of the ports is all of them, and paths have no fair rate.
    """
    ports, paths = list[ActiveLink](), list[Path]()
    for port in starts:
        if port.mark != mark and port.few:
            port.mark, port.left, port.waits = mark, port.capacity, port.flows
            ports.append(port)
    for port in ports:  # grows while it is read
        for path in port.few:
            if path.mark != mark:
                path.mark, path.fair_rate = mark, 0
                paths.append(path)
                for other in path.ports:
                    if other.mark != mark:
                        other.mark, other.left, other.waits = mark, other.capacity, other.flows
                        ports.append(other)
    return JoinedPaths(ports, paths)


def components(joined: JoinedPaths) -> list[JoinedPaths]:
    """Each component by itself."""
    number: dict[ActiveLink, int] = {}
    apart: list[JoinedPaths] = []
    for port in joined.ports:
        if port not in number:
            number[port] = len(apart)
            apart.append(JoinedPaths([], []))
            _spread(port, number)
        apart[number[port]].ports.append(port)
    for path in joined.paths:
        apart[number[path.ports[0]]].paths.append(path)
    return apart


def _spread(port: ActiveLink, number: dict[ActiveLink, int]) -> None:
    """Gives the number of a port to all that flows join to it."""
    ports = [port]
    for other in ports:  # grows while it is read
        for path in other.few:
            for there in path.ports:
                if there not in number:
                    number[there] = number[port]
                    ports.append(there)


_capacity = attrgetter("capacity")
_oldest = attrgetter("oldest")


def _find_one_rate(path: Path, ports: Iterable[ActiveLink]) -> None:
    """The rate of the only path of some ports."""
    flows = len(path.flows)
    least = min([port.capacity for port in ports])
    path.fair_rate = least // flows
    taken = path.fair_rate * flows
    path.limit = None
    for port in ports:
        port.left = left = port.capacity - taken
        if left < flows and path.limit is None:
            path.limit = port


def _fill(ports: Iterable[ActiveLink]) -> None:
    """Progressive filling, as in `fair_rates`, path by path."""
    waiting: Iterable[ActiveLink] = ports
    while waiting:
        least, full = _MORE, list[ActiveLink]()
        for port in waiting:
            share = port.left // port.waits
            if share < least:
                least, full = share, [port]
            elif share == least:
                full.append(port)
        for bottleneck in full:
            for path in bottleneck.few:
                if not path.fair_rate:
                    path.fair_rate, path.limit = least, bottleneck
                    flows = len(path.flows)
                    taken = least * flows
                    for port in path.ports:
                        port.left -= taken
                        port.waits -= flows
        waiting = [port for port in waiting if port.waits]


def _unused(paths: Sequence[Path]) -> dict[ActiveLink, int]:
    """What flows have of ports without that it is bytes that they carry."""
    unused: dict[ActiveLink, int] = {}
    for path in paths:
        if path.weight != WHOLE:
            more = path.rate * len(path.flows) * (WHOLE - path.weight)
            for port in path.ports:
                unused[port] = unused.get(port, 0) + more
    return unused
