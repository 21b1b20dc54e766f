"""What an actor can be told: a closed set of messages.

Flows in: whoever starts a step, or delivers what a segment was waiting for, posts messages. Flows out: the actor's
work, in the order of posting. Always holds: a message never changes; posting never blocks and never fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .plan import Chunk
    from .step import Part


class RunSegment(NamedTuple):
    """Everything that a segment of a step waits for is there: run it, from chunk number `next_chunk` of `chunks` on.

    `chunks` is None until the segment has been begun; then it is what the segment was cut into at that moment.
    """

    part: Part
    segment: int
    next_chunk: int = 0
    chunks: tuple[Chunk, ...] | None = None


class Shutdown(NamedTuple):
    """The session is over: finish what was posted before, and end."""


Message = RunSegment | Shutdown
