"""Where the members of a collective meet in a step of one process, and what they bring.

    group 1 of 3 members, instance 5:

    CPU:0 joins    1 of 3       its call stays open
    CPU:2 joins    2 of 3
    CPU:1 joins    3 of 3  -->  combined in the order of ranks (0, 1, 2); all three calls are done

Who meets whom, and who is refused, says `meeting_table`. In a step over several processes the same place is held by
`remote.meetings.RemoteMeetings`, which the step has from its beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from ....errors import DeadlineExceededError, InvalidArgumentError
from ....graph.dtypes import Array
from ...state import WaitingTensors
from ..registry import Call
from .meeting_table import CollectiveMeeting, InstanceKey, MeetingTable, Terms

MEETINGS_KEY = "partita.collectives"
"""under which a step keeps its meetings"""
IN_LOOP_BYTES = 1 << 24
"""what more is read and written in a worker thread: about 4 ms of copies on one core"""


class Brings(Protocol):
    """What `Combine` needs of a member."""

    @property
    def device(self) -> str:
        """The full name of its device."""

    @property
    def value(self) -> Array | None:
        """What it brings, None if it only takes."""

    @property
    def counts(self) -> Array | None:
        """How many rows of the value each member gets, where the shape does not say it."""


Combine = Callable[[Sequence[Brings]], Sequence[Any]]
"""from members in the order of their ranks to the output of each, an array or a tuple of them, which they may share"""


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
    op: str = ""
    num_outputs: int = 1
    release: Callable[[], None] | None = None
    """to be called when it waits no more"""

    def hold(self, waiting: WaitingTensors) -> None:
        """Counts the value in `waiting` until the member waits no more."""
        self.release = waiting.hold(0 if self.value is None else self.value.nbytes)
        self.call.on_cancel(self.release)

    def wait_no_more(self) -> None:
        """It is not counted any longer."""
        if self.release is not None:
            self.release()

    def done(self, output: Any) -> None:
        """Ends the call with an output of `Combine`."""
        self.wait_no_more()
        self.call.done(*(output if isinstance(output, tuple) else (output,)))


class MeetingPlace(Protocol):
    """What a step keeps for its collectives."""

    def join(self, key: InstanceKey, member: Member, waiting: WaitingTensors) -> None:
        """A member comes. Its call ends when all have come; values are counted in `waiting` until then."""


class Meetings:
    """All meetings of one step."""

    __slots__ = ("_table",)

    def __init__(self) -> None:
        self._table: MeetingTable[Member] = MeetingTable()

    def join(self, key: InstanceKey, member: Member, waiting: WaitingTensors) -> None:
        """A member comes; the last one starts the work. Raises as `MeetingTable.join`.

        The values of members are counted in `waiting` until all have come.
        """
        meeting = self._table.join(key, member.call.iterations, member)
        if meeting.is_complete:
            _complete(meeting)
        else:
            member.hold(waiting)
            _wait(meeting, member)


def meetings_of(call: Call) -> MeetingPlace:
    """The meetings of the step that a call belongs to."""
    place: MeetingPlace = call.step.state(MEETINGS_KEY, Meetings)
    return place


def _wait(meeting: CollectiveMeeting[Member], member: Member) -> None:
    """Leaves a call open until the others have come, its time is up, or nothing else of the step can go on."""
    call, seconds = member.call, member.timeout_s

    def is_late() -> None:
        member.wait_no_more()
        call.fail(DeadlineExceededError(meeting.is_late(seconds)))

    def is_stuck() -> None:
        member.wait_no_more()
        call.fail(InvalidArgumentError(meeting.is_stuck()))

    if seconds > 0:
        call.after(seconds, is_late)
    else:
        call.when_stuck(is_stuck)


def _complete(meeting: CollectiveMeeting[Member]) -> None:
    """Computes the outputs, in a worker thread if they take long, and ends all calls."""
    members = meeting.ranked()
    compute = partial(members[0].combine, members)
    meeting.last.call.compute(compute, partial(_end, members), in_thread=bytes_of(members) > IN_LOOP_BYTES)


def bytes_of(members: Sequence[Brings]) -> int:
    """The sizes of all values together."""
    return sum(member.value.nbytes for member in members if member.value is not None)


def _end(members: Sequence[Member], outputs: Sequence[Any]) -> None:
    for member, output in zip(members, outputs, strict=True):
        member.done(output)
