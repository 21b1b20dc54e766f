"""What the processes of a step and its coordinator say to each other about collectives.

    process -> coordinator     MemberJoined     a member has come
                               MemberLate       the time of a member is up
                               Unmet            the members could not be combined
    coordinator -> process     Meet             all have come: combine, or give and get
                               MemberRefused    a member cannot take part, or waits for nothing

There are no values in them: these go from process to process at the rendezvous of the step. A member is known by the
number that its process gave it, within the step.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from .....errors import PartitaError
from ..meeting_table import InstanceKey, Terms


class MemberJoined(NamedTuple):
    """A member has come: who it is, and what it brings.

    `iterations` are those of the loops around; `brings` and `counts` say whether it has a value, and counts of rows.
    """

    number: int
    key: InstanceKey
    iterations: tuple[int, ...]
    device: str
    terms: Terms
    rank: int | None
    brings: bool
    counts: bool
    timeout_s: float


class MemberLate(NamedTuple):
    """The time of a member is up."""

    number: int


class Unmet(NamedTuple):
    """The members of a meeting could not be combined, for which the one that came last fails."""

    meeting: int
    error: PartitaError


class MeetingSeat(NamedTuple):
    """One member of a complete meeting, by its process and the number there.

    `device` and `incarnation` are the ends of its keys.
    """

    process: str
    number: int
    device: str
    incarnation: int
    brings: bool
    counts: bool


class Meet(NamedTuple):
    """All members of a meeting have come; `seats` are in the order of ranks.

    The process of the seat `home` combines the values; the others send theirs there. An error of it is one of the
    member `last`.
    """

    meeting: int
    home: int
    last: int
    seats: tuple[MeetingSeat, ...]

    @property
    def at_home(self) -> MeetingSeat:
        """The seat whose process combines."""
        return self.seats[self.home]


class MemberRefused(NamedTuple):
    """A member fails with an error."""

    number: int
    error: PartitaError


ToCoordinator: TypeAlias = MemberJoined | MemberLate | Unmet
FromCoordinator: TypeAlias = Meet | MemberRefused
