"""Runs the segments of a plan, and gives the event loop its turn in time.

Flows in: a plan's segments and the slots of one step. Flows out: the slots, filled. Always holds: between two turns
of the event loop at most the budget passes, plus one chunk, and chunks that take more than half a budget are halved
until each is a single kernel; an error leaves with the node, op and device it belongs to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import length_hint
from time import perf_counter
from typing import TYPE_CHECKING

import trio

from ..errors import PartitaError
from .instructions import SEND_SLOT, Instruction, Slots

if TYPE_CHECKING:
    from .plan import Chunk, Plan, Segment

DEFAULT_BUDGET_S = 0.005


class Pacer:
    """Knows how long the event loop has been kept waiting by those who share this pacer."""

    __slots__ = ("budget_s", "clock", "since")

    def __init__(self, budget_s: float = DEFAULT_BUDGET_S, clock: Callable[[], float] = perf_counter) -> None:
        self.budget_s = budget_s
        self.clock = clock
        self.since = clock()

    async def rest_if_due(self) -> None:
        """Lets other tasks run when the budget is used up; raises Cancelled only then."""
        if self.clock() - self.since > self.budget_s:
            await self.rest()

    async def rest(self) -> None:
        """Lets other tasks run; a checkpoint."""
        await trio.lowlevel.checkpoint()
        self.since = self.clock()


def run_instructions(instructions: Iterator[Instruction], slots: Slots) -> None:
    """The inner loop; see `instructions.py` for the forms."""
    for k, i, j, o in instructions:
        if j:
            slots[o] = k(slots[i], slots[j])
        elif i:
            slots[o] = k(slots[i])
        else:
            k(slots)


def run_chunk(plan: Plan, segment: Segment, chunks: tuple[Chunk, ...], number: int, slots: Slots) -> None:
    """Runs one chunk; raises the error of a kernel, located."""
    rest = iter(chunks[number])
    try:
        run_instructions(rest, slots)
    except Exception as error:  # noqa: BLE001 - a kernel may raise anything; the caller learns where
        located = blame(plan, segment, chunks[: number + 1], rest, error)
        raise located from located.__cause__


def blame(
    plan: Plan, segment: Segment, begun: tuple[Chunk, ...], rest: Iterator[Instruction], error: Exception
) -> PartitaError:
    """The error of the instruction that was running when `rest` of the last of the chunks `begun` was not begun."""
    return plan.blame(segment, sum(map(len, begun)) - length_hint(rest) - 1, error)


async def run_segment(plan: Plan, segment: Segment, slots: Slots, pacer: Pacer, check: Callable[[], None]) -> None:
    """Runs a segment to its end, resting between chunks when the budget is used up; calls `check` after each rest."""
    clock, budget_s = pacer.clock, pacer.budget_s
    chunks = segment.chunks  # others may split them while this step rests
    for number in range(len(chunks)):
        started = clock()
        run_chunk(plan, segment, chunks, number, slots)
        ended = clock()
        if ended - started > budget_s / 2:
            segment.split(chunks[number])
        if ended - pacer.since > budget_s:
            await pacer.rest()
            check()


async def run_alone(plan: Plan, slots: Slots, pacer: Pacer, check: Callable[[], None]) -> None:
    """Runs a plan that receives nothing, in the task of the caller and without a task switch while the budget lasts.

    `check` is called after each rest; it raises if the step must not go on. Raises Cancelled only at a rest.
    """
    for segment in plan.segments:
        await run_segment(plan, segment, slots, pacer, check)


def nowhere_to_send(key: str, _value: object, _is_dead: bool = False) -> None:
    """What plans of a single device send with."""
    raise PartitaError(f"{key!r} leaves a partition that has no counterpart; partition the whole graph again")


def fresh_slots(plan: Plan, feeds: list[object], send: Callable[..., None] = nowhere_to_send) -> Slots:
    """The slots a step starts from: constants, `feeds` by index, and what to send with."""
    slots = plan.template.copy()
    slots[SEND_SLOT] = send
    for argument in plan.arguments:
        slots[argument.slot] = feeds[argument.index]
    return slots
