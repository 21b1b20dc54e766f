"""The messages that a device actor gets in its mailbox.

    RunSegment(part, 3)                  segment 3 of the part has all it waits for: run its first chunk
    RunSegment(part, 3, 1, chunks)       its first chunk has run: run the next one
    Return(call, results)                a function has ended: its results are for this node

Messages do not change after they were posted. Posting never blocks and never fails.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from ...errors import PartitaError
    from ..plans.instructions import Slots
    from ..plans.plan import Chunk, Plan
    from .chunks.chunk import SlowChunk, Turns
    from .step import Step

AT_ONCE = 512
"""receives that the start of a part registers in one turn, in a fraction of a millisecond"""
TurnedWork: TypeAlias = "Generator[SlowChunk | None, None, Sequence[Any]]"
"""work of several turns, as `executor.Turns`, which returns outputs, tensors of any type"""


class PartRun(Protocol):
    """What an actor needs of a `Part`."""

    step: Step
    plan: Plan
    slots: Slots

    def start(self, slots: Slots) -> None:
        """Begins with these slots."""

    def start_in_turns(self, slots: Slots) -> Iterator[None]:
        """The same in several turns."""

    def finished(self, segment: int) -> None:
        """All chunks of a segment have run."""

    def fail(self, error: PartitaError) -> None:
        """Fails the step with the error of an instruction."""


class Owner(Protocol):
    """Who gets the outputs of `TurnedWork`: a deferred node, or an interpreted graph."""

    @property
    def step(self) -> Step:
        """The step that the work is for."""

    @property
    def op(self) -> str:
        """The op that the message of an exception names."""

    @property
    def is_ended(self) -> bool:
        """Whether the outputs are no longer needed; then the work is closed."""

    def done(self, *outputs: Any) -> None:
        """Takes the outputs."""

    def fail(self, error: PartitaError) -> None:
        """Fails the step."""


class CallResults(Protocol):
    """The results of a call of a function."""

    def deliver(self) -> None:
        """Passes the results on to the node that called."""


class SlowWork(NamedTuple):
    """What a worker thread runs for a step; afterwards `go_on` is called, or `fail` with the error."""

    step: Step
    chunk: SlowChunk
    go_on: Callable[[], None]
    fail: Callable[[PartitaError], None]


class RunSegment(NamedTuple):
    """Run a segment whose inputs have arrived, from chunk number `next_chunk` on.

    `chunks` is None for a segment that has not begun, later the chunks it had when it began: other steps may halve
    the chunks of the plan meanwhile.
    """

    part: PartRun
    segment: int
    next_chunk: int = 0
    chunks: tuple[Chunk, ...] | None = None


class FirstRun(NamedTuple):
    """Go on with the first run of a segment. Before it has ended no other segment runs: they may use the same slots."""

    part: PartRun
    segment: int
    work: Turns


class Continue(NamedTuple):
    """Begin work of several turns, or continue it after the time budget was used up."""

    owner: Owner
    work: TurnedWork


class RunInThread(NamedTuple):
    """Run a chunk in a worker thread, then continue the work that needs it."""

    owner: Owner
    work: TurnedWork
    chunk: SlowChunk


class Begin(NamedTuple):
    """Start the latest of the calls that wait in `Step.call_starts` of this actor.

    Calls are thus started as from a stack: a tree of calls has at most depth times width of them running, while other
    steps have their turns in between.
    """

    step: Step


class Return(NamedTuple):
    """A function has ended: deliver its results to the call. By message, so that deep nesting does not recurse."""

    call: Owner
    results: CallResults


class Resume(NamedTuple):
    """Go on with the kernel of a deferred node that has paused, unless its step has ended."""

    call: Owner
    resume: Callable[[], None]


class Shutdown(NamedTuple):
    """End after the messages that were posted before this one."""


Other = FirstRun | Continue | RunInThread | Begin | Return | Resume | Shutdown
Message = RunSegment | Other
