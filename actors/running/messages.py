"""What an actor can be told: a closed set of messages.

Flows in: whoever starts a step, or delivers what a segment was waiting for, posts messages. Flows out: the actor's
work, in the order of posting. Always holds: a message never changes; posting never blocks and never fails.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from ...errors import PartitaError
    from ..plans.instructions import Slots
    from ..plans.plan import Chunk, Plan
    from .step import Step

Work: TypeAlias = "Generator[None, None, Sequence[Any]]"
"""what takes several turns: it yields between them, and returns outputs, tensors of any type"""


class Run(Protocol):
    """A plan under way on one device, as its actor sees it."""

    step: Step
    plan: Plan
    slots: Slots

    def finished(self, segment: int) -> None:
        """A segment has run to its end."""

    def fail(self, error: PartitaError) -> None:
        """An instruction has failed, and the step with it."""


class Worker(Protocol):
    """Whose work an actor does in turns: a call, or an interpreted graph."""

    @property
    def step(self) -> Step:
        """The step that the work is for."""

    @property
    def op(self) -> str:
        """The op to which an exception of the work is put down."""

    @property
    def is_ended(self) -> bool:
        """Whether nobody wants the outputs any more."""

    def done(self, *outputs: Any) -> None:
        """The outputs are there."""

    def fail(self, error: PartitaError) -> None:
        """The work has failed, and the step with it."""


class Results(Protocol):
    """What a call of a function gives."""

    def hand_over(self) -> None:
        """Gives the results to whoever waits for them."""


class RunSegment(NamedTuple):
    """Everything that a segment of a step waits for is there: run it, from chunk number `next_chunk` of `chunks` on.

    `chunks` is None until the segment has been begun; then it is what the segment was cut into at that moment.
    """

    part: Run
    segment: int
    next_chunk: int = 0
    chunks: tuple[Chunk, ...] | None = None


class GoOn(NamedTuple):
    """What a device does by itself is to be begun, or had to stop because the budget was used up: go on with it."""

    worker: Worker
    work: Work


class Begin(NamedTuple):
    """Begin the call that waits for it in a step: of several the latest one.

    So calls are worked off as a stack, and a tree of calls never has more of them under way than it is deep and wide,
    while other steps have their turn in between.
    """

    step: Step


class Return(NamedTuple):
    """A function has ended: hand what it computed over to the call. Calls inside calls return one after the other."""

    call: Worker
    results: Results


class Shutdown(NamedTuple):
    """The session is over: finish what was posted before, and end."""


Message = RunSegment | GoOn | Begin | Return | Shutdown
