"""The flows of a step of representatives as if all ranks were written out, and one route that counts for each class.

A *family* are flows that begin together: those of one phase of all groups of an axis, or one transfer of all ranks of a
stage. One flow of each class (see `refinement`) is played, over a route with `counts`. Most families have one class;
where groups have flows of different classes, the clock sees to it that they end together (see `hardware.equals`).

    tp all-reduce, 32 groups of 8 on hosts of 8    32 * 8 flows, one class: GPU:0 -> GPU:1 with counts 1, 1
    dp all-reduce, 8 groups of 32 over one port    8 * 32 flows, one class: over the port with a count of 8
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from attrs import evolve

from ..collectives.group import group_of
from ..collectives.plan import plan_of
from ..hardware.equals import EqualGroups, SharedRoute
from .alike import GroupFacts, LinkLikeness, check_groups_alike, facts_of, refuse
from .refinement import flow_classes

if TYPE_CHECKING:
    from ...topology import Link, Route
    from ..bodies.node_places import RouteEnds
    from ..fits.calibration import Calibration
    from .ranks import Ranks

_SIZE = 1 << 26  # bytes of the plans that are compared: any number at which all phases take time


class Use(NamedTuple):
    """A kind of collective along some axes, on a stage; -1 for axes that join stages."""

    kind: str
    axes: str
    stage: int


class _Family(NamedTuple):
    """By group its flows, and the names of its devices; `group` has the first one of a collective, by number."""

    what: str
    group: tuple[int, ...]
    groups: Sequence[Sequence[Route]]
    names: Sequence[Sequence[str]]


class PlayedPhase(NamedTuple):
    """What is played for a phase of all groups of an axis: flows of the representative's, and those of others."""

    routes: tuple[Route, ...]
    equals: EqualGroups | None


class SharedRoutes:
    """The routes of representatives: `transfers` by identity of their own route, `of_group` by devices of the group.

    The latter maps routes of a phase, by their identities, to what is played in place of them.
    """

    def __init__(
        self, ranks: Ranks, uses: Iterable[Use], ways: Mapping[RouteEnds, Route], calibration: Calibration | None
    ) -> None:
        """Raises UnimplementedError for groups whose collectives take other times."""
        self._ranks = ranks
        self._calibration = calibration
        self.transfers: dict[int, SharedRoute] = {}
        self.of_group: dict[tuple[int, ...], dict[tuple[int, ...], PlayedPhase]] = {}
        transfers = [self._transfer(ends) for ends in ways]
        by_place: dict[tuple[str, int], list[str]] = {}
        for use in uses:
            by_place.setdefault((use.axes, use.stage), []).append(use.kind)
        collectives = [family for place, kinds in by_place.items() for family in self._collective(*place, kinds)]
        self._families = [*transfers, *collectives]
        flows = [route for family in self._families for group in family.groups for route in group]
        of_family = [n for n, family in enumerate(self._families) for group in family.groups for _ in group]
        self._classes = flow_classes(flows, of_family, LinkLikeness(ranks))
        self._canonical = self._chosen_links()
        self._fill()

    def like(self, link: str) -> str:
        """The name of the link that carries in the played step what a link does in the step of all ranks."""
        number = self._by_name.get(link)
        return link if number is None else self._canonical[int(self._classes.of_link[number])].name

    @cached_property
    def _by_name(self) -> dict[str, int]:
        return {link.name: number for number, link in enumerate(self._classes.links)}

    # Families

    def _transfer(self, ends: RouteEnds) -> _Family:
        """One transfer of all ranks of a stage."""
        ranks, devices, numbers = self._ranks, self._ranks.cluster.devices, self._ranks.cluster.numbers
        sources, destinations = (ranks.of_stage(numbers[name]) for name in (ends.src, ends.dst))
        pairs = [(devices[src].name, devices[dst].name) for src, dst in zip(sources, destinations, strict=True)]
        routes = [[ends._replace(src=src, dst=dst).route(ranks.cluster)] for src, dst in pairs]
        return _Family("the transfers between stages", (), routes, pairs)

    def _collective(self, axes: str, stage: int, kinds: Sequence[str]) -> list[_Family]:
        """The phases of the collectives of an axis; those over the same links are one family."""
        groups = list(self._groups(axes, stage))
        what = f"axis {axes!r}" + (f" of stage {stage}" if stage >= 0 else "")
        names = [self._ranks.names(group) for group in groups]
        phases: list[list[tuple[Route, ...]]] = []
        first: GroupFacts | None = None
        for group in names:
            facts, routes = self._phases(kinds, group)
            if first is None:
                first = facts
            check_groups_alike(what, (names[0], first), (group, facts))
            phases.append(routes)
        own = tuple(sorted(self._ranks.devices[rank] for rank in groups[0]))
        self.of_group.setdefault(own, {})
        return [_Family(what, own, [routes[n] for routes in phases], names) for n in range(len(phases[0]))]

    def _groups(self, axes: str, stage: int) -> Iterable[tuple[int, ...]]:
        """The groups of an axis, that of the first rank first."""
        mesh = self._ranks.mesh
        first = max(stage, 0) * mesh.per_stage
        left = set[int]()
        for rank in range(first, first + mesh.per_stage):
            if rank not in left:
                group = mesh.group(axes, rank)
                left.update(group)
                yield group

    def _phases(self, kinds: Sequence[str], names: Sequence[str]) -> tuple[GroupFacts, list[tuple[Route, ...]]]:
        """The facts of a group, and the routes of the phases of all kinds, those of the same routes once."""
        cluster, calibration = self._ranks.cluster, self._calibration
        plans = [plan_of(kind, names, _SIZE, cluster, calibration) for kind in kinds]
        facts = facts_of(group_of(kinds[0], names, cluster, calibration), plans)
        phases = {_identity(phase.routes): phase.routes for plan in plans for phase in plan.phases if phase.routes}
        return facts, list(phases.values())

    # Classes

    def _chosen_links(self) -> dict[int, Link]:
        """By class of links the one that is played: that of a representative's own flow if there is one."""
        chosen: dict[int, Link] = {}
        for family in self._families:
            for route in family.groups[0]:
                for link in route.links:
                    chosen.setdefault(self._class_of(link), link)
        for link in self._classes.links:
            chosen.setdefault(self._class_of(link), link)
        return chosen

    def _class_of(self, link: Link) -> int:
        return int(self._classes.of_link[self._classes.number_of[id(link)]])

    def _fill(self) -> None:
        """Makes the routes that are played."""
        at, of_flow = 0, self._classes.of_flow.tolist()
        for family in self._families:
            groups = []
            for group in family.groups:
                groups.append(dict(zip(reversed(of_flow[at : at + len(group)]), reversed(group), strict=True)))
                at += len(group)
            if family.group:
                played = self._played_group(family, groups)
                self.of_group.setdefault(family.group, {})[_identity(family.groups[0])] = played
            else:
                self.transfers[id(family.groups[0][0])] = self._played_transfer(family, groups)

    def _played_transfer(self, family: _Family, groups: Sequence[dict[int, Route]]) -> SharedRoute:
        """The route of the representative's transfer, with those of the other classes."""
        ends = {kind: names for group, names in reversed([*zip(groups, family.names, strict=True)]) for kind in group}
        routes = {kind: route for group in reversed(groups) for kind, route in group.items()}
        (own,) = groups[0]
        shared = {kind: _checked(self._route(kind, route, ends[kind]), route) for kind, route in routes.items()}
        others = tuple(route for kind, route in shared.items() if kind != own)
        return evolve(shared[own], others=others)

    def _played_group(self, family: _Family, groups: Sequence[dict[int, Route]]) -> PlayedPhase:
        """The routes of the classes of the representative's group, and the groups that have other ones."""
        numbers = {kind: number for number, kind in enumerate(groups[0])}
        routes = [self._route(kind, route, ()) for kind, route in groups[0].items()]
        others: list[Route] = []
        kinds: dict[tuple[int, ...], tuple[str, ...]] = {}
        for group, names in zip(groups, family.names, strict=True):
            for kind, route in group.items():
                if kind not in numbers:
                    numbers[kind] = len(numbers)
                    others.append(self._route(kind, route, ()))
            kinds.setdefault(tuple(sorted(numbers[kind] for kind in group)), tuple(names))
        kinds.pop(tuple(range(len(routes))))  # the representative's own
        equals = EqualGroups(tuple(others), tuple(kinds), tuple(kinds.values())) if kinds else None
        return PlayedPhase(tuple(routes), equals)

    def _route(self, kind: int, route: Route, ends: Sequence[str]) -> SharedRoute:
        """The route of a flow of a class, which stands for all of them."""
        classes = list(dict.fromkeys(self._class_of(link) for link in route.links))
        links = tuple(self._canonical[of_link] for of_link in classes)
        return SharedRoute(links, tuple(self._classes.counts[kind, of_link] for of_link in classes), ends=tuple(ends))


def _identity(routes: Iterable[Route]) -> tuple[int, ...]:
    return tuple(map(id, routes))


def _checked(played: SharedRoute, own: Route) -> SharedRoute:
    """The route that a transfer takes; UnimplementedError if several of its equals need one copy engine."""
    if len(played.links) != len(own.links):
        refuse(f"{own.links[0].name} and another link on the way of one transfer carry the same; name them differently")
    for link, count in zip(played.links, played.counts, strict=True):
        if link.copy_engines and count > 1:
            refuse(f"{count} equal transfers would wait for the copy engines of {link.name}")
    return played
