"""Paths that are joined to few others: most transfers of most steps.

Ports that flows join are a *component*. While one has few paths, its rates are found path by path, from scratch, each
time that a flow comes or goes: that takes less than to keep what groups of paths know (see `grouping`). Many paths are
put into groups, of which a search looks at those alone that may change.

    a over ports 1, 2      b over 2, 3      c over 4       two components: c is alone, and nobody looks at a and b
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
from .ports import WHOLE, ActiveLink

MOST_PATHS = 16  # paths of a component that are not worth groups


class FewPaths:
    """The paths with flows that are in no group. Their ports know them (`few`), and no groups."""

    def __init__(self) -> None:
        self.ends: list[tuple[int, Path]] = []
        """paths whose next end is another one since somebody has cleared the list, and when it is"""

    def place(self, flow: ActiveFlow, now: int) -> None:
        """A flow begins on a path none of whose ports has groups."""
        path = flow.path
        flows = path.flows
        if flows:
            heappush(path.ends, (path.virtual_at(now) + flow.work, flow.number, flow))
            path.entry = 0
        else:
            path.oldest = flow.number
            path.since_ns = now
            path.ends.append((flow.work, flow.number, flow))
            for port in path.ports:
                port.few[path] = None
        flows[flow] = None
        for port in path.ports:
            port.flows += 1

    def end(self, flow: ActiveFlow) -> None:
        """A flow has ended that its path has taken out of its ends."""
        path = flow.path
        flows = path.flows
        del flows[flow]
        path.entry = 0
        if flows:
            path.oldest = next(iter(flows)).number
            for port in path.ports:
                port.flows -= 1
        else:
            for port in path.ports:
                port.flows -= 1
                del port.few[path]
            path.stop()

    def give_up(self, paths: Iterable[Path], now: int, search: int) -> None:
        """Whole components go into groups."""
        for path in paths:
            path.virtual, path.rate, path.entry = path.virtual_at(now), 0, 0
            flows = len(path.flows)
            for port in path.ports:
                port.flows -= flows
                del port.few[path]
                if port.load:
                    port.record_load(0, search)

    def find(self, ports: Sequence[ActiveLink], paths: Sequence[Path], now: int, search: int) -> None:
        """Finds the rates of components, whose ports are in the order of the search for them."""
        if len(paths) == 1:
            _find_one_rate(paths[0], ports)
        else:
            _fill(ports, paths)
        ends = self.ends
        for path in paths:
            rate, limits = path.fair_rate, path.limits
            if not limits or limits[-1][1] is not path.limit:
                limits.append((now, path.limit))
            if rate != path.rate:
                path.virtual += path.rate * (now - path.since_ns)
                path.since_ns, path.rate = now, rate
            elif path.entry:
                continue
            ends.append((path.since_ns - (path.virtual - path.ends[0][0]) // rate, path))
        unused = _unused(paths)
        for port in ports:
            load = (port.capacity - port.left) * WHOLE
            if unused:
                load -= unused.get(port, 0)
            if load != port.load:
                port.record_load(load, search)


class Joined(NamedTuple):
    """Ports without groups that flows join, and the paths of these flows, in the order of a search."""

    ports: list[ActiveLink]
    paths: list[Path]

    def components(self) -> list[Joined]:
        """Each component by itself."""
        number: dict[ActiveLink, int] = {}
        components: list[Joined] = []
        for port in self.ports:
            if port not in number:
                number[port] = len(components)
                components.append(Joined([], []))
                _spread(port, number)
            components[number[port]].ports.append(port)
        for path in self.paths:
            components[number[path.ports[0]]].paths.append(path)
        return components


def joined_to(starts: Iterable[ActiveLink], mark: int) -> Joined:
    """All that flows join to some ports, but for ports that have groups; `mark` is new for each search."""
    ports, paths = list[ActiveLink](), list[Path]()
    for port in starts:
        if port.mark != mark and not port.crossings:
            port.mark = mark
            ports.append(port)
    for port in ports:  # grows while it is read
        few = port.few
        for path in few if len(few) < 2 else sorted(few, key=_oldest):
            if path.mark != mark:
                path.mark = mark
                paths.append(path)
                for other in path.ports:
                    if other.mark != mark:
                        other.mark = mark
                        ports.append(other)
    return Joined(ports, paths)


def _spread(port: ActiveLink, number: dict[ActiveLink, int]) -> None:
    """Gives the number of a port to all that flows join to it."""
    ports = [port]
    for other in ports:  # grows while it is read
        for path in other.few:
            for there in path.ports:
                if there not in number:
                    number[there] = number[port]
                    ports.append(there)


_oldest = attrgetter("oldest")


def _find_one_rate(path: Path, ports: Iterable[ActiveLink]) -> None:
    """The rate of the only path of some ports."""
    flows = len(path.flows)
    path.fair_rate = rate = min([port.capacity for port in path.ports]) // flows
    limit = None
    for port in ports:
        if port.flows:
            port.left = left = port.capacity - rate * flows
            if limit is None and left < flows:
                path.limit = limit = port
        else:
            port.left = port.capacity


def _fill(ports: Iterable[ActiveLink], paths: Iterable[Path]) -> None:
    """Progressive filling, as in `fair_rates`, path by path."""
    waiting: list[ActiveLink] = []
    for port in ports:
        port.left, port.waits = port.capacity, port.flows
        if port.flows:
            waiting.append(port)
    for path in paths:
        path.fair_rate = 0
    while waiting:
        shares = [port.left // port.waits for port in waiting]
        least = min(shares)
        for bottleneck, share in zip(waiting, shares, strict=True):
            if share == least and bottleneck.waits:
                for path in bottleneck.few:
                    if not path.fair_rate:
                        path.fair_rate, path.limit = least, bottleneck
                        flows = len(path.flows)
                        taken = least * flows
                        for port in path.ports:
                            port.left -= taken
                            port.waits -= flows
        waiting = [port for port in waiting if port.waits]


def _unused(paths: Iterable[Path]) -> dict[ActiveLink, int]:
    """What flows have of ports without that it is bytes that they carry."""
    unused: dict[ActiveLink, int] = {}
    for path in paths:
        if path.weight != WHOLE:
            more = path.rate * len(path.flows) * (WHOLE - path.weight)
            for port in path.ports:
                unused[port] = unused.get(port, 0) + more
    return unused
