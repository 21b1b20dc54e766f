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

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import trio

from ...plans.instructions import SEND_SLOT, Slots
from .chunk import SlowChunk, Turns, run_chunk, run_slow_chunk
from .first_run import first_run
from .learning import LearningLimits, is_observed, learn

if TYPE_CHECKING:
    from ...plans.plan import Plan, Segment
    from ..pacing import Pacer


def run_in_turns(
    plan: Plan, segment: Segment, slots: Slots, pacer: Pacer, limits: LearningLimits | None = None
) -> Turns:
    """Runs a segment whose chunks may be slow, and learns from each; the caller runs and learns from what it yields.

    Without limits those of the pacer count.
    """
    limits = limits or pacer.limits
    if not segment.has_run:
        yield from first_run(plan, segment, slots, pacer, limits)
        return
    clock, notice_s = pacer.clock, limits.notice_s
    chunks = segment.chunks  # other steps may replace them between two turns
    for number, chunk in enumerate(chunks):
        if id(chunk) in segment.slow:
            yield SlowChunk(plan, segment, chunks, number, slots)
            continue
        started = clock()
        run_chunk(plan, segment, chunks, number, slots)
        ended = clock()
        if ended - started > notice_s or is_observed(segment, id(chunk)):
            learn(plan, segment, chunks, number, ended - started, limits)
        if ended > pacer.slice.end:
            yield None


async def run_alone(
    plan: Plan, slots: Slots, pacer: Pacer, limiter: trio.CapacityLimiter, check: Callable[[], None]
) -> None:
    """Runs a plan without receives in the caller's task, without a task switch while the budget lasts.

    Only a kernel that would use up the budget alone runs in a thread. After each task switch `check` is called, which
    raises if the step must not continue. Task switches are the only checkpoints.
    """
    limits = LearningLimits(pacer.limits.chunk_s, max(pacer.budget_s, pacer.limits.thread_s))
    for segment in plan.segments:
        for chunk in run_in_turns(plan, segment, slots, pacer, limits):
            if chunk is None:
                await pacer.yield_now()
                check()
                continue
            last, started = pacer.slice.number, pacer.clock()
            await run_slow_chunk(chunk, limiter)
            check()
            # To wait for the thread was a switch of tasks: if nobody has begun a slice since, this begins one, so that
            # the time in the thread does not count as time that the event loop was kept.
            pacer.slice.may_go_on(last)
            learn(chunk.plan, chunk.segment, chunk.chunks, chunk.number, pacer.clock() - started, limits)
            await pacer.yield_if_due()
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
