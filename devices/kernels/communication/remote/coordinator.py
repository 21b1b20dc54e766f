"""Decides, in the session's process, which members of a step meet, for a step over several processes.

    W1: MemberJoined 0, CPU:0, group 1 of 2                     it waits
    W2: MemberJoined 0, CPU:3, group 1 of 2     complete  -->   Meet to W1 and W2: CPU:0 then CPU:3, at home in W1

Checks, texts and the order of ranks are those of a step in one process, `meeting_table`. The home of a meeting is the
process of its first member, whose `combine` counts as it does in one process. Where only one member brings a value (a
broadcast), the home is its process: there is nothing to merge, and the value crosses each connection once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

from .....errors import DeadlineExceededError, InvalidArgumentError, PartitaError
from ..meeting_table import CollectiveMeeting, MeetingTable, Terms
from .messages import FromCoordinator, Meet, MeetingSeat, MemberJoined, MemberLate, MemberRefused, ToCoordinator, Unmet


@dataclass(eq=False, slots=True)
class _RemoteMember:
    """A member and its process: what the table asks of it is in `joined`."""

    process: str
    joined: MemberJoined

    @property
    def device(self) -> str:
        return self.joined.device

    @property
    def terms(self) -> Terms:
        return self.joined.terms

    @property
    def rank(self) -> int | None:
        return self.joined.rank


class MeetingCoordinator:
    """The meetings of one step over several processes."""

    __slots__ = ("_complete", "_incarnation", "_table", "_tell", "_waiting")

    def __init__(
        self, tell: Callable[[str, FromCoordinator], object], incarnation: Callable[[str], int] = lambda _device: 0
    ) -> None:
        """`tell` sends a message to a process; `incarnation` is that of a device, for keys."""
        self._tell = tell
        self._incarnation = incarnation
        self._table: MeetingTable[_RemoteMember] = MeetingTable()
        self._waiting: dict[tuple[str, int], tuple[CollectiveMeeting[_RemoteMember], _RemoteMember]] = {}
        self._complete: list[_RemoteMember] = []
        """the last members of complete meetings, by number"""

    def receive(self, process: str, message: ToCoordinator) -> None:
        """Takes a message of a process."""
        match message:
            case MemberJoined():
                self._join(_RemoteMember(process, message))
            case MemberLate(number):
                self._late(process, number)
            case Unmet(meeting, error):
                self._refuse(self._complete[meeting], error)
            case _:
                assert_never(message)

    def refuse_waiting(self) -> bool:
        """Fails the member that has waited longest without a limit, as none can come any more; False if none waits."""
        for meeting, member in self._waiting.values():
            if not member.joined.timeout_s > 0:
                self._refuse(member, InvalidArgumentError(meeting.is_stuck()))
                return True
        return False

    def _join(self, member: _RemoteMember) -> None:
        joined = member.joined
        try:
            meeting = self._table.join(joined.key, joined.iterations, member)
            if meeting.is_complete:
                self._meet(meeting)
            else:
                self._waiting[member.process, joined.number] = meeting, member
        except PartitaError as error:
            self._refuse(member, error)

    def _meet(self, meeting: CollectiveMeeting[_RemoteMember]) -> None:
        """Tells the processes of all members; InvalidArgumentError for wrong ranks."""
        members = meeting.ranked()
        for member in members:
            self._waiting.pop((member.process, member.joined.number), None)
        bringing = [number for number, member in enumerate(members) if member.joined.brings]
        home = bringing[0] if len(bringing) == 1 else 0
        seats = tuple(map(self._seat, members))
        meet = Meet(len(self._complete), home, members.index(meeting.last), seats)
        self._complete.append(meeting.last)
        for process in dict.fromkeys(member.process for member in members):
            self._tell(process, meet)

    def _seat(self, member: _RemoteMember) -> MeetingSeat:
        joined = member.joined
        incarnation = self._incarnation(joined.device)
        return MeetingSeat(member.process, joined.number, joined.device, incarnation, joined.brings, joined.counts)

    def _late(self, process: str, number: int) -> None:
        """A member is late unless its meeting has become complete meanwhile."""
        waiting = self._waiting.get((process, number))
        if waiting is not None:
            meeting, member = waiting
            self._refuse(member, DeadlineExceededError(meeting.is_late(member.joined.timeout_s)))

    def _refuse(self, member: _RemoteMember, error: PartitaError) -> None:
        self._tell(member.process, MemberRefused(member.joined.number, error))
