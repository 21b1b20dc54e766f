"""What an actor can be told: a closed set of messages.

Flows in: whoever starts a step, or delivers what a segment was waiting for, posts messages. Flows out: the actor's
work, in the order of posting. Always holds: a message never changes; posting never blocks and never fails.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from .deferred import PendingCall
    from .interpreted_part import InterpretedPart
    from .plan import Chunk
    from .step import Part

Work: TypeAlias = "Generator[None, None, Sequence[Any]]"
"""what takes several turns: it yields between them, and returns outputs, tensors of any type"""


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


class Shutdown(NamedTuple):
    """The session is over: finish what was posted before, and end."""


Message = RunSegment | GoOn | Shutdown
