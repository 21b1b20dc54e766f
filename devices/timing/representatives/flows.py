"""The flows of a step of representatives as if all ranks were written out, and one route that counts for each class.

A *family* are flows that begin together: those of one phase of all groups of an axis, or one transfer of all ranks of a
stage. In each family all groups have to be alike. The representative then plays the flows of its own group, one of each
class (see `refinement`), over a route with `counts`.

    tp all-reduce, 32 groups of 8 on hosts of 8    32 * 8 flows, one class: GPU:0 -> GPU:1 with counts 1, 1
    dp all-reduce, 8 groups of 32 over one port    8 * 32 flows, one class: over the port with a count of 8
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ...topology import Route
from ..collectives.group import group_of
from ..collectives.plan import plan_of
from .alike import GroupFacts, LinkLikeness, check_groups_alike, facts_of, refuse, refuse_flows
from .refinement import FlowClasses, flow_classes

if TYPE_CHECKING:
    from ...topology import Link
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


class SharedRoutes:
    """The routes of representatives: `transfers` by identity of their own route, `of_group` by devices of the group.

    The latter maps routes of a phase, by their identities, to those that are played in place of them.
    """

    def __init__(
        self, ranks: Ranks, uses: Iterable[Use], ways: Mapping[RouteEnds, Route], calibration: Calibration | None
    ) -> None:
        """Raises UnimplementedError for groups or transfers that are not alike."""
        self._ranks = ranks
        self._calibration = calibration
        self.transfers: dict[int, Route] = {}
        self.of_group: dict[tuple[int, ...], dict[tuple[int, ...], tuple[Route, ...]]] = {}
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
        first = 0
        for family in self._families:
            self._check(family, first)
            first += sum(map(len, family.groups))
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
        names, phases = [self._ranks.names(group) for group in groups], list[list[tuple[Route, ...]]]()
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

    def _check(self, family: _Family, first: int) -> None:
        """UnimplementedError if the groups of a family do not have flows of the same classes; its flows begin there."""
        of_flow, at = self._classes.of_flow, first
        own: list[int] = []
        for group, names in zip(family.groups, family.names, strict=True):
            classes = sorted(of_flow[at : at + len(group)].tolist())
            at += len(group)
            if at == first + len(group):
                own = classes
            elif classes != own:
                refuse_flows(family.what, (family.names[0], names), (family.groups[0], group))

    def _fill(self) -> None:
        """Makes the routes that are played."""
        at = 0
        for family in self._families:
            own = family.groups[0]
            flows = zip(self._classes.of_flow[at : at + len(own)].tolist(), own, strict=True)
            at += sum(map(len, family.groups))
            played = tuple(self._route(*flow) for flow in {flow[0]: flow for flow in reversed([*flows])}.values())
            if family.group:
                self.of_group.setdefault(family.group, {})[_identity(own)] = played
            else:
                self.transfers[id(own[0])] = _checked(played[0], own[0])

    def _route(self, kind: int, route: Route) -> Route:
        """The route of a flow of a class, which stands for all of them."""
        classes = list(dict.fromkeys(self._class_of(link) for link in route.links))
        links = tuple(self._canonical[of_link] for of_link in classes)
        return Route(links, tuple(self._classes.counts[kind, of_link] for of_link in classes))


def _identity(routes: Iterable[Route]) -> tuple[int, ...]:
    return tuple(map(id, routes))


def _checked(played: Route, own: Route) -> Route:
    """The route that a transfer takes; UnimplementedError if several of its equals need one copy engine."""
    if len(played.links) != len(own.links):
        refuse(f"{own.links[0].name} and another link on the way of one transfer carry the same; give them other models")
    for link, count in zip(played.links, played.counts, strict=True):
        if link.copy_engines and count > 1:
            refuse(f"{count} equal transfers would wait for the copy engines of {link.name}")
    return played
