"""Where the members of a collective meet: the place of one step, its groups, and one meeting for each instance.

    group 1 of 3 members, instance 5:

    CPU:0 joins    1 of 3       its call stays open
    CPU:2 joins    2 of 3
    CPU:1 joins    3 of 3  -->  combined in the order of ranks (0, 1, 2); all three calls are done

A meeting is found by the key of its group, its instance and the numbers of the iterations of the loops around: replicas
have loops of their own, whose names differ. Ranks are those of a communicator, else the order of the devices.

The first members that come make the group, as many as their group size says. Who does not fit in is an error that ends
the step: the codes are TensorFlow's, which waits for ever where a device comes twice.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from ....errors import DeadlineExceededError, InternalError, InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.device_name import device_order
from ....graph.dtypes import Array, DataType, dtype_name
from ...state import WaitingTensors
from ..registry import Call

_KEY = "partita.collectives"
_IN_LOOP_BYTES = 1 << 24
"""what more is read and written in a worker thread: about 4 ms of copies on one core"""


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


@dataclass(eq=False, slots=True)
class Member:
    """One node that takes part. `value` is what it brings, None if it only takes.

    `rank` orders the members where a communicator gives ranks; `combine` computes the outputs of all of them from the
    members in order of rank. `counts` says how many rows of the value each member gets, where the shape does not.
    """

    call: Call
    device: str
    value: Array | None
    terms: Terms
    combine: Combine
    rank: int | None = None
    timeout_s: float = 0.0
    counts: Array | None = None
    release: Callable[[], None] | None = None
    """to be called when it waits no more"""


Combine = Callable[[Sequence[Member]], Sequence[Any]]
"""from members in the order of their ranks to the output of each, an array or a tuple of them, which they may share"""


@dataclass(slots=True)
class _Group:
    size: int
    devices: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Meeting:
    key: InstanceKey
    members: dict[str, Member] = field(default_factory=dict)


class Meetings:
    """All meetings of one step."""

    __slots__ = ("_groups", "_meetings", "_over")

    def __init__(self) -> None:
        self._groups: dict[Hashable, _Group] = {}
        self._meetings: dict[Hashable, _Meeting] = {}
        self._over: set[Hashable] = set()

    def join(self, key: InstanceKey, member: Member, waiting: WaitingTensors) -> None:
        """A member comes; the last one starts the work. Raises what `_enter` and `_agree` do.

        The values of members are counted in `waiting` until all have come.
        """
        self._enter(key, member)
        place = key, member.call.iterations
        if place in self._over:
            raise _twice(key, member.device)
        meeting = self._meetings.get(place)
        if meeting is None:
            meeting = self._meetings[place] = _Meeting(key)
        elif member.device in meeting.members:
            raise _twice(key, member.device)
        else:
            _agree(key, next(iter(meeting.members.values())), member)
        meeting.members[member.device] = member
        if len(meeting.members) == member.terms.size:
            del self._meetings[place]
            self._over.add(place)
            _complete(meeting)
        else:
            _hold(member, waiting)
            _wait(meeting, member)

    def _enter(self, key: InstanceKey, member: Member) -> None:
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


def meetings_of(call: Call) -> Meetings:
    """The meetings of the step that a call belongs to."""
    return call.step.state(_KEY, Meetings)


def _agree(key: InstanceKey, first: Member, other: Member) -> None:
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


def _hold(member: Member, waiting: WaitingTensors) -> None:
    member.release = waiting.hold(0 if member.value is None else member.value.nbytes)
    member.call.on_cancel(member.release)


def _wait(meeting: _Meeting, member: Member) -> None:
    """Leaves a call open until the others have come, its time is up, or nothing else of the step can go on."""
    call, seconds = member.call, member.timeout_s

    def is_late() -> None:
        _release(member)
        call.fail(DeadlineExceededError(f"{_missing(meeting)} after {seconds:g} seconds"))

    def is_stuck() -> None:
        _release(member)
        call.fail(InvalidArgumentError(f"{_missing(meeting)}, and nothing else can go on"))

    if seconds > 0:
        call.after(seconds, is_late)
    else:
        call.when_stuck(is_stuck)


def _release(member: Member) -> None:
    if member.release is not None:
        member.release()


def _missing(meeting: _Meeting) -> str:
    devices = sorted(meeting.members, key=device_order)
    size = next(iter(meeting.members.values())).terms.size
    missing = size - len(devices)
    return (
        f"{meeting.key}: {missing} of {size} members {'has' if missing == 1 else 'have'} not come; "
        f"{', '.join(devices)} {'waits' if len(devices) == 1 else 'wait'}"
    )


def _complete(meeting: _Meeting) -> None:
    """Computes the outputs, in a worker thread if they take long, and ends all calls."""
    members = ranked(meeting)
    combine = members[0].combine
    last = next(reversed(meeting.members.values()))
    moved = sum(member.value.nbytes for member in members if member.value is not None)
    last.call.compute(partial(combine, members), partial(_end, members), in_thread=moved > _IN_LOOP_BYTES)


def ranked(meeting: _Meeting) -> list[Member]:
    """The members in the order of their ranks; InvalidArgumentError if a communicator gave one rank twice."""
    members = sorted(meeting.members.values(), key=lambda m: (m.rank or 0, device_order(m.device)))
    ranks = [member.rank for member in members if member.rank is not None]
    if ranks and ranks != list(range(len(members))):
        raise InvalidArgumentError(f"{meeting.key}: the ranks are {ranks}; give each member its own, from 0")
    return members


def _end(members: Sequence[Member], outputs: Sequence[Any]) -> None:
    for member, output in zip(members, outputs, strict=True):
        _release(member)
        member.call.done(*(output if isinstance(output, tuple) else (output,)))
