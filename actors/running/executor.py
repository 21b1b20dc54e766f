"""Runs segments of a plan, chunk by chunk, and says when other tasks must run.

    segment of 150 instructions      chunks of 64, 64, 22; after each the clock is read
    the slice of 2.5 ms is over      other tasks of the event loop run before the next chunk
    a chunk is one slow kernel       it runs in a worker thread

Between two turns of the event loop passes at most the time budget plus one chunk. How long the chunks are is learnt
from earlier steps (`learning`). Errors of kernels are located: they carry the node, its op and its device.

An actor runs the chunks of its messages itself (`device_actor`); here are the ways of all others: a plan that is alone
in its step runs in the task of its caller, and the body of a loop is work of several turns.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from operator import length_hint
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

import trio

from ...errors import PartitaError
from ..plans.instructions import SEND_SLOT, Instruction, Slots, run_instructions
from .learning import LearningLimits, learn

if TYPE_CHECKING:
    from ..plans.plan import Chunk, Plan, Segment

DEFAULT_BUDGET_S = 0.005
DEFAULT_THREAD_LIMIT_S = 0.001


class Pacer:
    """The time budget of the event loop: shared by all code that runs steps, it says when other tasks must run.

    In each turn of the event loop the tasks that run steps share one slice of time, however many they are: the first of
    them that goes on after a switch of tasks begins it, at `slice_start` in seconds on `clock`, and the others use what
    it leaves. Slices are numbered, so that a task knows whether another has begun a slice since it waits. A slice is
    half the budget: another task may have to wait for one at the end of a turn and for one at the start of the next.
    """

    __slots__ = ("budget_s", "clock", "limits", "notice_s", "slice_number", "slice_s", "slice_start", "slow_s")

    def __init__(
        self,
        budget_s: float = DEFAULT_BUDGET_S,
        thread_limit_s: float = DEFAULT_THREAD_LIMIT_S,
        *,
        only_device: bool = False,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        """Kernels that take longer than `thread_limit_s` run in a worker thread, which costs about 100 us.

        With an only device nothing else would run beside them: there the budget is the limit, if it is longer.
        """
        self.budget_s = budget_s
        self.slice_s = budget_s / 2
        self.limits = LearningLimits(budget_s / 2, max(budget_s, thread_limit_s) if only_device else thread_limit_s)
        self.notice_s = self.limits.notice_s
        self.slow_s = min(self.limits)
        self.clock = clock
        self.slice_start = clock()
        self.slice_number = 0

    @property
    def deadline(self) -> float:
        """When other tasks must run next, in seconds on `clock`."""
        return self.slice_start + self.slice_s

    async def yield_if_due(self) -> None:
        """Lets other tasks run if the slice is used up. A checkpoint only then."""
        if self.clock() > self.deadline:
            await self.yield_now()

    async def yield_now(self) -> None:
        """Lets other tasks run until there is time to go on. At least one checkpoint."""
        while True:
            number = self.slice_number
            await trio.lowlevel.checkpoint()
            if self.may_go_on(number):
                return

    def may_go_on(self, number: int) -> bool:
        """Whether there is time to go on, after a switch of tasks before which slice `number` was the last one."""
        if number == self.slice_number:
            self.slice_number += 1
            self.slice_start = self.clock()
            return True
        return self.clock() <= self.deadline


class SlowChunk(NamedTuple):
    """One kernel that a worker thread should run: chunk `number` of the chunks that a segment had when it began."""

    plan: Plan
    segment: Segment
    chunks: tuple[Chunk, ...]
    number: int
    slots: Slots


Turns = Generator[SlowChunk | None, None, None]
"""work of several turns: it yields None when other tasks must run, or a chunk that has to run before it goes on"""


def run_chunk(plan: Plan, segment: Segment, chunks: tuple[Chunk, ...], number: int, slots: Slots) -> None:
    """Runs one chunk; raises the located error of a kernel."""
    rest = iter(chunks[number])
    try:
        run_instructions(rest, slots)
    except Exception as error:  # noqa: BLE001 - a kernel may raise anything; the error is located
        located = locate_error(plan, segment, chunks[: number + 1], rest, error)
        raise located from located.__cause__


def locate_error(
    plan: Plan, segment: Segment, begun: tuple[Chunk, ...], rest: Iterator[Instruction], error: Exception
) -> PartitaError:
    """The error with the node, op and device of the instruction that raised it.

    `begun` are the chunks begun so far, `rest` is the iterator over the last of them: what it has not yielded has not
    begun, so the length that is left gives the instruction. Counting while running would cost time in every step.
    """
    return plan.locate_error(segment, sum(map(len, begun)) - length_hint(rest) - 1, error)


async def run_slow_chunk(chunk: SlowChunk, limiter: trio.CapacityLimiter) -> None:
    """Runs one chunk in a worker thread; a cancellation waits until the chunk has run."""
    await trio.to_thread.run_sync(run_chunk, *chunk, limiter=limiter)


def run_in_turns(plan: Plan, segment: Segment, slots: Slots, pacer: Pacer) -> Turns:
    """Runs a segment whose chunks may be slow, and learns from each; the caller runs and learns from what it yields."""
    clock = pacer.clock
    chunks = segment.chunks  # other steps may replace them between two turns
    for number, chunk in enumerate(chunks):
        if id(chunk) in segment.slow:
            yield SlowChunk(plan, segment, chunks, number, slots)
            continue
        started = clock()
        run_chunk(plan, segment, chunks, number, slots)
        ended = clock()
        if ended - started > pacer.notice_s or id(chunk) in segment.slow_once:
            learn(plan, segment, chunks, number, ended - started, pacer.limits)
        if ended > pacer.deadline:
            yield None


async def run_alone(
    plan: Plan, slots: Slots, pacer: Pacer, limiter: trio.CapacityLimiter, check: Callable[[], None]
) -> None:
    """Runs a plan without receives in the caller's task, without a task switch while the budget lasts.

    Only a kernel that would use up the budget alone runs in a thread. After each task switch `check` is called, which
    raises if the step must not continue. Task switches are the only checkpoints.
    """
    clock, slice_s = pacer.clock, pacer.slice_s
    limits = LearningLimits(pacer.limits.chunk_s, max(pacer.budget_s, pacer.limits.thread_s))
    notice_s = limits.notice_s
    for segment in plan.segments:
        chunks = segment.chunks  # other steps may replace them during a task switch
        for number, chunk in enumerate(chunks):
            started = clock()
            is_slow = id(chunk) in segment.slow
            if is_slow:
                last = pacer.slice_number
                await run_slow_chunk(SlowChunk(plan, segment, chunks, number, slots), limiter)
                check()
                # To wait for the thread was a switch of tasks: if nobody has begun a slice since, this begins one, so
                # that the time in the thread does not count as time that the event loop was kept.
                pacer.may_go_on(last)
            else:
                run_chunk(plan, segment, chunks, number, slots)
            ended = clock()
            if ended - started > notice_s or is_slow or id(chunk) in segment.slow_once:
                learn(plan, segment, chunks, number, ended - started, limits)
            if ended - pacer.slice_start > slice_s:
                await pacer.yield_now()
                check()


def drop(_key: str, _value: object, _is_dead: bool = False) -> None:
    """The send function of a plan that is alone in its step and receives nothing: it drops the tensor.

    Such a plan sends only for `_Send` nodes of the user's graph. No receive can match, and TensorFlow too drops what is
    left in the rendezvous at the end of a step.
    """


def fresh_slots(plan: Plan, feeds: Sequence[object], send: Callable[..., None] = drop) -> Slots:
    """The slots at the start of a step: a copy of the template with the feeds, by index, and the send function."""
    slots = plan.template.copy()
    slots[SEND_SLOT] = send
    for argument in plan.arguments:
        slots[argument.slot] = feeds[argument.index]
    return slots
