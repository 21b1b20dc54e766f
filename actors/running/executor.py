"""Runs the segments of a plan, and gives the event loop its turn in time.

Flows in: a plan's segments and the slots of one step. Flows out: the slots, filled. Always holds: between two turns
of the event loop at most the budget passes, plus one chunk, and chunks that take more than half a budget are halved
until each is a single kernel; an error leaves with the node, op and device it belongs to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import length_hint
from time import perf_counter
from typing import TYPE_CHECKING

import trio

from ...errors import PartitaError
from ..plans.instructions import SEND_SLOT, Instruction, Slots, run_instructions
from .learning import Limits, learn

if TYPE_CHECKING:
    from ..plans.plan import Chunk, Plan, Segment

DEFAULT_BUDGET_S = 0.005
DEFAULT_THREAD_LIMIT_S = 0.001


class Pacer:
    """Knows how long the event loop has been kept waiting by those who share this pacer."""

    __slots__ = ("budget_s", "clock", "limits", "notice_s", "since")

    def __init__(
        self,
        budget_s: float = DEFAULT_BUDGET_S,
        thread_limit_s: float = DEFAULT_THREAD_LIMIT_S,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        """`thread_limit_s` is how long a kernel must take to be worth a thread (which costs some 100 us)."""
        self.budget_s = budget_s
        self.limits = Limits(budget_s / 2, thread_limit_s)
        self.notice_s = self.limits.notice_s
        self.clock = clock
        self.since = clock()

    async def yield_if_due(self) -> None:
        """Lets other tasks run when the budget is used up; raises Cancelled only then."""
        if self.clock() - self.since > self.budget_s:
            await self.yield_now()

    async def yield_now(self) -> None:
        """Lets other tasks run; a checkpoint."""
        await trio.lowlevel.checkpoint()
        self.since = self.clock()


def run_chunk(plan: Plan, segment: Segment, chunks: tuple[Chunk, ...], number: int, slots: Slots) -> None:
    """Runs one chunk; raises the error of a kernel, located."""
    rest = iter(chunks[number])
    try:
        run_instructions(rest, slots)
    except Exception as error:  # noqa: BLE001 - a kernel may raise anything; the caller learns where
        located = locate_error(plan, segment, chunks[: number + 1], rest, error)
        raise located from located.__cause__


def locate_error(
    plan: Plan, segment: Segment, begun: tuple[Chunk, ...], rest: Iterator[Instruction], error: Exception
) -> PartitaError:
    """The error of the instruction that was running when `rest` of the last of the chunks `begun` was not begun."""
    return plan.locate_error(segment, sum(map(len, begun)) - length_hint(rest) - 1, error)


async def run_slow_chunk(
    plan: Plan, segment: Segment, chunks: tuple[Chunk, ...], number: int, slots: Slots, limiter: trio.CapacityLimiter
) -> None:
    """Runs one chunk in a worker thread; a cancellation is delivered when it is done."""
    await trio.to_thread.run_sync(run_chunk, plan, segment, chunks, number, slots, limiter=limiter)


async def run_alone(
    plan: Plan, slots: Slots, pacer: Pacer, limiter: trio.CapacityLimiter, check: Callable[[], None]
) -> None:
    """Runs a plan that receives nothing, in the task of the caller and without a task switch while the budget lasts.

    Kernels that alone would use up the budget run in a thread. `check` is called after each rest; it raises if the step
    must not go on. Raises Cancelled only at a rest.
    """
    clock, budget_s = pacer.clock, pacer.budget_s
    limits = Limits(pacer.limits.chunk_s, max(budget_s, pacer.limits.thread_s))
    notice_s = limits.notice_s
    for segment in plan.segments:
        chunks = segment.chunks  # others may split them while this step rests
        for number, chunk in enumerate(chunks):
            started = clock()
            if segment.slow and id(chunk) in segment.slow:
                await run_slow_chunk(plan, segment, chunks, number, slots, limiter)
                check()
                pacer.since = clock()
            else:
                run_chunk(plan, segment, chunks, number, slots)
            ended = clock()
            if ended - started > notice_s or segment.slow or segment.slow_once:
                learn(plan, segment, chunks, number, ended - started, limits)
            if ended - pacer.since > budget_s:
                await pacer.yield_now()
                check()


def drop(_key: str, _value: object, _is_dead: bool = False) -> None:
    """What a part sends with that is the only one of its step and receives nothing.

    Such a graph sends only by `_Send` nodes that it came with. Nobody can ask for their tensors, and what is left in
    the rendezvous of a step is dropped when the step ends, in TensorFlow as well.
    """


def fresh_slots(plan: Plan, feeds: Sequence[object], send: Callable[..., None] = drop) -> Slots:
    """The slots a step starts from: constants, `feeds` by index, and what to send with."""
    slots = plan.template.copy()
    slots[SEND_SLOT] = send
    for argument in plan.arguments:
        slots[argument.slot] = feeds[argument.index]
    return slots
