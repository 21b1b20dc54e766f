"""Which of several full ports limits a flow, as far as a timeline says.

Where two ports of a path are full at the same share, either could be called the bottleneck. It is the one that a search
from the ports where flows came or went, in that order, comes to first, by way of the flows that have begun first:

    flow x over ports a, b (equal)      begins: the search finds a, b           x is limited by a
    flow y over ports c, b              begins: b alone is full                 x is limited by b
                                        ends: the search finds c, b, a          x is limited by b, not by a

The search is made only if it decides something: a *component* is ports that flows join, directly or over others, and
knows its groups with such a choice. Components are joined as flows come, and found anew by the search.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .flow_groups import FlowGroup, Path
from .ports import ActiveLink


class Component:
    """Ports that flows join, or have joined before the last search: a tree of components that have become one."""

    __slots__ = ("parent", "tied")

    def __init__(self) -> None:
        self.parent: Component | None = None
        self.tied: dict[FlowGroup, None] = {}  # groups with more than one full port

    def root(self) -> Component:
        """The component that this one is part of."""
        at = self
        while at.parent is not None:
            if at.parent.parent is not None:
                at.parent = at.parent.parent
            at = at.parent
        return at


def unite(ports: tuple[ActiveLink, ...]) -> None:
    """A flow joins ports."""
    one = component_of(ports[0])
    for port in ports:
        other = port.component
        if other is one:
            continue
        if other is None:
            port.component = one
            continue
        other = component_of(port)
        if other is not one:
            if len(other.tied) > len(one.tied):
                one, other = other, one
            one.tied.update(other.tied)
            other.tied.clear()
            other.parent = one


def component_of(port: ActiveLink) -> Component:
    """The component that a port is in."""
    component = port.component
    if component is None:
        component = port.component = Component()
    elif component.parent is not None:
        component = port.component = component.root()
    return component


class Ties:
    """Which groups several ports limit, and which of these ports it is said to be."""

    def __init__(self) -> None:
        self.groups = 0
        """so many are tied"""

    def decide(self, settled: Iterable[FlowGroup], changed: Iterable[ActiveLink], mark: int, now: int) -> None:
        """Gives limits to groups that have got rates, and to those that a search from `changed` ports comes to."""
        for group in settled:
            if not group.flows:
                continue
            if len(group.full) > 1:
                if not group.is_tied:
                    self.groups += 1
                    _tie(group)
                continue
            self.untie(group)
            group.take_limit(group.full[0], now)
        if self.groups:
            for group, port in _tied_limits(changed, mark):
                group.take_limit(port, now)

    def untie(self, group: FlowGroup) -> None:
        """Not more than one port limits a group any longer."""
        if group.is_tied:
            self.groups -= 1
            group.is_tied = False
            component_of(group.ports[0]).tied.pop(group, None)


def _tie(group: FlowGroup) -> None:
    """More than one port limits a group: its component is to know."""
    group.is_tied = True
    component_of(group.ports[0]).tied[group] = None


def _tied_limits(changed: Iterable[ActiveLink], mark: int) -> list[tuple[FlowGroup, ActiveLink]]:
    """The groups with several full ports in the components of `changed`, and which of these the search found first."""
    starts = dict.fromkeys([port for port in changed if port.crossings and component_of(port).tied])
    if not starts:
        return []
    places = {port: place for place, port in enumerate(starts)}
    components = dict.fromkeys([component_of(port) for port in starts])
    limits, far = list[tuple[FlowGroup, ActiveLink]](), list[FlowGroup]()
    for component in components:
        for group in component.tied:
            near = [port for port in group.full if port in places]
            if near:
                limits.append((group, near[0] if len(near) == 1 else min(near, key=places.__getitem__)))
            else:
                far.append(group)
    return limits + _far_limits(starts, components, far, mark) if far else limits


def _far_limits(
    starts: Iterable[ActiveLink], components: Iterable[Component], far: list[FlowGroup], mark: int
) -> list[tuple[FlowGroup, ActiveLink]]:
    """The same for groups none of whose full ports is among those where the search starts."""
    walk = _Walk(starts, mark)
    reached: list[tuple[FlowGroup, ActiveLink]] = []
    wanted: dict[ActiveLink, list[FlowGroup]] = {}
    for group in far:
        for port in group.full:
            wanted.setdefault(port, []).append(group)
    left = dict.fromkeys(far)
    for port in walk:
        for group in wanted.get(port, ()):
            if group in left:
                del left[group]
                reached.append((group, port))
        if not left:
            return reached
    _split(components, walk.ports, walk.paths)
    return reached


def _split(components: Iterable[Component], ports: Iterable[ActiveLink], paths: Iterable[Path]) -> None:
    """Ports that are all that flows join to some part of components become components of their own."""
    apart = set(ports)
    tied = [group for component in components for group in component.tied if group.ports[0] in apart]
    for component in components:
        for group in tied:
            component.tied.pop(group, None)
    for port in ports:
        port.component = None
    for path in paths:
        unite(path.ports)
    for group in tied:
        _tie(group)


class _Walk:
    """The ports that flows join to some ports, in the order of the search, and the paths of these flows.

    A port is handed out as soon as it is found, as most walks end early.
    """

    def __init__(self, starts: Iterable[ActiveLink], mark: int) -> None:
        self.ports = list(starts)
        self.paths: list[Path] = []
        self._mark = mark

    def __iter__(self) -> Iterator[ActiveLink]:
        mark, ports = self._mark, self.ports
        for port in ports:
            port.mark = mark
            yield port
        for port in ports:  # grows while it is read
            for path in sorted(port.paths, key=_oldest) if len(port.paths) > 1 else port.paths:
                if path.mark != mark:
                    path.mark = mark
                    self.paths.append(path)
                    for other in path.ports:
                        if other.mark != mark:
                            other.mark = mark
                            ports.append(other)
                            yield other


def _oldest(path: Path) -> int:
    """The number of its flow that began first."""
    return next(iter(path.flows)).number
