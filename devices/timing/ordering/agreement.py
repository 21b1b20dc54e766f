"""Collectives of one group keep one order on all members: what is refused where an order of the caller breaks that.

The members of two collectives have to be given the two in one order; the engine begins them by the priority of the
first member, so another order on another member could not be kept:

    gpu:0   a0: 2, b0: 1        a before b
    gpu:1   a1: 1, b1: 2        b before a: refused
    gpu:1   a1, b1 not named    as they come: refused

Instances that a communicator counts as they begin are those of the nodes that are ready first, so kernels in another
order may join other members in one collective. Then the step would be another one, and is refused.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from ....errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..playing.player import Player


class _Member(NamedTuple):
    """The node of a member, as the timeline names it, its iterations, its device, and its priority."""

    node: str
    iteration: str
    device: str
    priority: float


_Met = list[tuple[str, list[_Member]]]
"""the collectives that have begun: group, and members in the order of their devices"""


def check_agreement(player: Player) -> None:
    """InvalidArgumentError if members of one group were given its collectives in different orders; names both."""
    groups: dict[tuple[str, tuple[str, ...]], list[list[_Member]]] = {}
    for group, members in _met(player):
        groups.setdefault((group, tuple(member.device for member in members)), []).append(members)
    for (group, _), meetings in groups.items():
        first, *others = zip(*meetings, strict=True)  # by member its place in all meetings
        for other in others:
            _check_members(group, first, other)


def _check_members(group: str, one: Sequence[_Member], other: Sequence[_Member]) -> None:
    """Compares the order of collectives on two members."""
    pairs = sorted(zip(one, other, strict=True), key=lambda pair: (pair[0].priority, pair[1].priority))
    for (a, b), (c, d) in pairwise(pairs):
        if (a.priority < c.priority) != (b.priority < d.priority) or b.priority > d.priority:
            raise InvalidArgumentError(
                f"order: the members of group {group} differ: {_said(c, a)}, {_said(d, b)}; give all members of one "
                "collective one priority",
                node=a.node,
            )


def _said(one: _Member, other: _Member) -> str:
    """In which order two collectives come on one device."""
    if one.priority == other.priority:
        return f"{one.node!r} and {other.node!r} of {one.device} have the same priority, {one.priority:g}"
    first, last = (one, other) if one.priority > other.priority else (other, one)
    return f"{first.node!r} ({first.priority:g}) of {one.device} comes before {last.node!r} ({last.priority:g})"


def check_counted(player: Player, as_ready: Callable[[], Player]) -> None:
    """InvalidArgumentError if counted instances have other members than by "ready"; names both.

    `as_ready` plays the step in that order, which is done only where instances are counted.
    """
    if not any(meeting.seat.instance is None for meeting in player.engine.collectives.begun or ()):
        return
    expected = dict[tuple[str, str, str], list[_Member]]()
    for _, members in _met(as_ready()):
        expected.update({(member.node, member.iteration, member.device): members for member in members})
    for group, members in _met(player):
        first = members[0]
        usual = expected[first.node, first.iteration, first.device]
        for one, other in zip(members, usual, strict=True):
            if one[:3] != other[:3]:
                raise InvalidArgumentError(
                    f"order: {first.node!r} of {first.device} would take part in a collective of group {group} with "
                    f'{one.node!r} of {one.device}, by "ready" with {other.node!r}, as a communicator counts what '
                    "begins; add control edges between the collectives of each device, in the order that all share",
                    node=first.node,
                )


def _met(player: Player) -> _Met:
    met, names, priorities = _Met(), player.shared.cluster.names, player.shared.priorities
    for meeting in player.engine.collectives.begun or ():
        members = []
        for member in sorted(meeting.members, key=lambda member: member.device):
            activation = player.owner(member.row)
            node = activation.prefix + activation.body.graph.names[member.row - activation.base]
            members.append(_Member(node, activation.iteration, names[member.device], priorities[member.row]))
        met.append((meeting.seat.group, members))
    return met
