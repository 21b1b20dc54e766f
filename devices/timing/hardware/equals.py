"""Flows of ranks that are not played themselves: they share links, and have to end when those of representatives do.

A representative's flow stands for all flows of its class: as many are counted on each link as cross it. Flows of other
classes, which cross other links or links that others share, are played beside it; nobody waits for them:

    instant     0                            10                      12
    own         GPU:0 -> GPU:4 begins        arrives                 the receive goes on
    equal       GPU:1 -> GPU:5 begins        has to arrive too       else the ranks are not alike: an error

So whatever the links of a cluster are, a step of representatives is that of all ranks, or it is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from attrs import frozen

from ....errors import UnimplementedError
from ...topology import Route

if TYPE_CHECKING:
    from .instants import Instants

FIRST_EQUAL = 1 << 52
"""numbers of transfers from here on are flows of other ranks"""
_TRANSFERS = 1 << 56  # below are those of collectives
_MOST_CLASSES = 1 << 20  # of one transfer: more than a cluster has devices


@frozen
class SharedRoute(Route):
    """The route of a flow that stands for several: by link as many of them cross it as `counts` says.

    `others` are those of the other classes of the same transfer, and `ends` names devices that such a flow joins.
    """

    counts: tuple[int, ...] = ()
    others: tuple[SharedRoute, ...] = ()
    ends: tuple[str, ...] = ()


class EqualGroups(NamedTuple):
    """The flows of other groups that begin with a phase of a collective.

    `routes` are those of classes that the representative's group lacks. `kinds` are the groups that differ: by group
    the numbers of its flows among those of the phase and then these. `names` has the devices of each.
    """

    routes: tuple[Route, ...]
    kinds: tuple[tuple[int, ...], ...]
    names: tuple[tuple[str, ...], ...]


class _CommonEnd:
    """When flows end that have to end together: -1 until the first of them has."""

    __slots__ = ("at_ns",)

    def __init__(self) -> None:
        self.at_ns = -1


class _Group:
    """Flows of a group, or the one of a transfer, that are under way; `names` are its devices, none of one's own."""

    __slots__ = ("ends", "flows", "names")

    def __init__(self, ends: _CommonEnd, flows: int, names: Sequence[str]) -> None:
        self.ends = ends
        self.flows = flows
        self.names = names


class EqualFlows:
    """The flows of other ranks that are under way, and those of representatives that have equals."""

    def __init__(self, instants: Instants) -> None:
        self.were_used = False
        self._instants = instants
        self._next = FIRST_EQUAL
        self._groups: dict[int, list[_Group]] = {}  # by flow

    def transfer(self, row: int, route: SharedRoute) -> Sequence[int]:
        """The numbers of the flows beside the transfer of a row; they are in order of rows, as those of receives."""
        self.were_used = True
        ends, first = _CommonEnd(), _TRANSFERS + row * _MOST_CLASSES
        self._groups[row] = [_Group(ends, 1, ())]
        for number, other in enumerate(route.others, first):
            self._groups[number] = [_Group(ends, 1, other.ends)]
        return range(first, first + len(route.others))

    def phase(self, flows: Sequence[int], equals: EqualGroups) -> Sequence[int]:
        """The numbers of the flows beside those of a phase of a collective."""
        self.were_used = True
        others = range(self._next, self._next + len(equals.routes))
        self._next = others.stop
        ends, numbers = _CommonEnd(), [*flows, *others]
        for members, names in [(range(len(flows)), ()), *zip(equals.kinds, equals.names, strict=True)]:
            group = _Group(ends, len(members), names)
            for member in members:
                self._groups.setdefault(numbers[member], []).append(group)
        return others

    def arrived(self, flow: int) -> None:
        """A flow has arrived; UnimplementedError if its group ends at another instant than one that it is equal to."""
        for group in self._groups.pop(flow, ()):
            group.flows -= 1
            if not group.flows:
                self._end(group)

    def _end(self, group: _Group) -> None:
        now, ends = self._instants.now(), group.ends
        if ends.at_ns < 0:
            ends.at_ns = now
        elif ends.at_ns != now:
            who = ", ".join(group.names) or "the representatives"
            raise UnimplementedError(
                f"representatives cannot stand for the ranks of this cluster: what {who} exchange ends at {now} ns, "
                f"that of others at {ends.at_ns} ns, as other flows share their links; simulate the graph of all ranks "
                "(write_out, or representatives=False)"
            )
