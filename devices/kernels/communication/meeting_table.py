"""Who has come to which collective of a step: groups, instances and ranks, known by what members say of themselves.

    group 1 of 3 members, instance 5:

    CPU:0 comes    1 of 3
    CPU:2 comes    2 of 3
    CPU:1 comes    3 of 3: complete, and in the order of ranks these are CPU:0, CPU:1, CPU:2

A meeting is found by the key of its group, its instance and the numbers of the iterations of the loops around: replicas
have loops of their own, whose names differ. Ranks are those of a communicator, else the order of the devices.

The first members that come make the group, as many as their group size says. Who does not fit in is an error that ends
the step: the codes are TensorFlow's, which waits for ever where a device comes twice.

Nothing here looks at values. So one table serves the steps of a process (`meeting`) and those over several processes,
whose members come from all of them (`remote`).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, Protocol, TypeVar

from ....errors import InternalError, InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.device_name import device_order
from ....graph.dtypes import DataType, dtype_name


class InstanceKey(NamedTuple):
    """Which meeting: the key of a group and the number of the instance, where that has any."""

    group: Hashable
    instance: Hashable

    def __str__(self) -> str:
        return f"group {self.group}, instance {self.instance}"


@dataclass(frozen=True, slots=True)
class Terms:
    """What the members of an instance must agree on. A size in `shape` is None where any will do."""

    kind: str
    size: int
    dtype: DataType
    shape: tuple[int | None, ...]


class Attendee(Protocol):
    """What a member says of itself. A communicator gives it a `rank`."""

    @property
    def device(self) -> str:
        """The full name of its device."""

    @property
    def terms(self) -> Terms:
        """What it expects of the others."""

    @property
    def rank(self) -> int | None:
        """Its place among them."""


A = TypeVar("A", bound=Attendee)


@dataclass(slots=True)
class CollectiveMeeting(Generic[A]):
    """The members that have come, by device, in the order in which they came."""

    key: InstanceKey
    size: int
    members: dict[str, A] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        """Whether all members are there."""
        return len(self.members) == self.size

    @property
    def last(self) -> A:
        """The member that came last."""
        return next(reversed(self.members.values()))

    def ranked(self) -> list[A]:
        """The members in the order of their ranks; InvalidArgumentError if a communicator gave one rank twice."""
        members = sorted(self.members.values(), key=lambda m: (m.rank or 0, device_order(m.device)))
        ranks = [member.rank for member in members if member.rank is not None]
        if ranks and ranks != list(range(len(members))):
            raise InvalidArgumentError(f"{self.key}: the ranks are {ranks}; give each member its own, from 0")
        return members

    def missing(self) -> str:
        """How many have not come, and who waits for them, for an error."""
        devices = sorted(self.members, key=device_order)
        missing = self.size - len(devices)
        return (
            f"{self.key}: {missing} of {self.size} members {'has' if missing == 1 else 'have'} not come; "
            f"{', '.join(devices)} {'waits' if len(devices) == 1 else 'wait'}"
        )

    def is_late(self, seconds: float) -> str:
        """The text of the error for a member whose time is up."""
        return f"{self.missing()} after {seconds:g} seconds"

    def is_stuck(self) -> str:
        """The text of the error for a member that waits for others which cannot come any more."""
        return f"{self.missing()}, and nothing else can go on"


@dataclass(slots=True)
class _Group:
    size: int
    devices: set[str] = field(default_factory=set)


class MeetingTable(Generic[A]):
    """All meetings of one step."""

    __slots__ = ("_groups", "_meetings", "_over")

    def __init__(self) -> None:
        self._groups: dict[Hashable, _Group] = {}
        self._meetings: dict[Hashable, CollectiveMeeting[A]] = {}
        self._over: set[Hashable] = set()

    def join(self, key: InstanceKey, iterations: Sequence[int], member: A) -> CollectiveMeeting[A]:
        """A member comes; returns its meeting, which is over in the table once it is complete.

        InvalidArgumentError or InternalError if the member cannot be of its group, comes again, or does not agree with
        the others. Then the table is as before, but for the group.
        """
        self._enter(key, member)
        place = key, tuple(iterations)
        if place in self._over:
            raise _twice(key, member.device)
        meeting = self._meetings.get(place)
        if meeting is None:
            meeting = self._meetings[place] = CollectiveMeeting(key, member.terms.size)
        elif member.device in meeting.members:
            raise _twice(key, member.device)
        else:
            _agree(key, next(iter(meeting.members.values())), member)
        meeting.members[member.device] = member
        if meeting.is_complete:
            del self._meetings[place]
            self._over.add(place)
        return meeting

    def _enter(self, key: InstanceKey, member: A) -> None:
        """Makes a device a member of its group; InvalidArgumentError or InternalError if it cannot be one."""
        size = member.terms.size
        if size < 1:
            raise InvalidArgumentError(f"group_size must be at least 1, but of group {key.group} it is {size}")
        group = self._groups.setdefault(key.group, _Group(size))
        if group.size != size:
            raise InternalError(
                f"{member.device} says that group {key.group} has {size} members, where others said {group.size}; "
                "give all members the same group_size"
            )
        if member.device not in group.devices and len(group.devices) == size:
            raise InternalError(
                f"{member.device} comes to group {key.group}, whose {size} members are there already: "
                f"{', '.join(sorted(group.devices, key=device_order))}; give it a group_key of its own"
            )
        group.devices.add(member.device)


def _agree(key: InstanceKey, first: Attendee, other: Attendee) -> None:
    """InternalError for another kind of collective or element type, InvalidArgumentError for another shape."""
    ours, theirs = other.terms, first.terms
    if ours.kind != theirs.kind:
        raise InternalError(
            f"{key}: {other.device} comes for {ours.kind}, {first.device} for {theirs.kind}; "
            "give each collective an instance_key of its own"
        )
    if ours.dtype != theirs.dtype:
        raise InternalError(
            f"{key}: {other.device} brings {dtype_name(ours.dtype)}, {first.device} {dtype_name(theirs.dtype)}"
        )
    if ours.shape != theirs.shape:
        raise InvalidArgumentError(
            f"Shape mismatch in {key}: {other.device} has {shape_text(ours.shape)}, "
            f"{first.device} {shape_text(theirs.shape)}"
        )


def _twice(key: InstanceKey, device: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{key}: device {device} comes twice in one step; give the second collective another instance_key"
    )
