"""What an actor can be told: a closed set of messages.

Flows in: whoever starts a step, or delivers what a segment was waiting for, posts messages. Flows out: the actor's
work, in the order of posting. Always holds: a message never changes; posting never blocks and never fails.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from ..plans.plan import Chunk
    from .interpreted_part import InterpretedPart
    from .pending import PendingCall
    from .step import Part, Step

Work: TypeAlias = "Generator[None, None, Sequence[Any]]"
"""what takes several turns: it yields between them, and returns outputs, tensors of any type"""


class Results(Protocol):
    """What a call of a function gives."""

    def hand_over(self) -> None:
        """Gives the results to whoever waits for them."""


class RunSegment(NamedTuple):
    """Everything that a segment of a step waits for is there: run it, from chunk number `next_chunk` of `chunks` on.

    `chunks` is None until the segment has been begun; then it is what the segment was cut into at that moment.
    """

    part: Part
    segment: int
    next_chunk: int = 0
    chunks: tuple[Chunk, ...] | None = None


class GoOn(NamedTuple):
    """What a device does by itself is to be begun, or had to stop because the budget was used up: go on with it."""

    call: PendingCall | InterpretedPart
    work: Work


class Begin(NamedTuple):
    """Begin the call that waits for it in a step: of several the latest one.

    So calls are worked off as a stack, and a tree of calls never has more of them under way than it is deep and wide,
    while other steps have their turn in between.
    """

    step: Step


class Return(NamedTuple):
    """A function has ended: hand what it computed over to the call. Calls inside calls return one after the other."""

    call: PendingCall
    results: Results


class Shutdown(NamedTuple):
    """The session is over: finish what was posted before, and end."""


Message = RunSegment | GoOn | Begin | Return | Shutdown
