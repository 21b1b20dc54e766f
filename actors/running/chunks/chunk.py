"""A chunk of a segment: instructions that run without a look at the clock, here or in a worker thread."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from operator import length_hint
from typing import TYPE_CHECKING, NamedTuple

from ....errors import PartitaError
from ....graph.analysis.shape_functions import lookup
from ...plans.instructions import Instruction, Slots, run_instructions
from ..threads import run_in_thread

if TYPE_CHECKING:
    import trio

    from ...plans.plan import Chunk, Plan, Segment


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
        # No variable holds the new error: with its traceback, which refers to this frame, it would be a cycle.
        raise locate_error(plan, segment, chunks[: number + 1], rest, error)  # noqa: B904 - `of_kernel` has set the cause


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
    await run_in_thread(_run_slow_chunk, *chunk, limiter=limiter)


def _run_slow_chunk(plan: Plan, segment: Segment, chunks: tuple[Chunk, ...], number: int, slots: Slots) -> None:
    """As `run_chunk`; also loads the shape function that predicts other kernels of the op in the event loop."""
    run_chunk(plan, segment, chunks, number, slots)
    lookup(plan.properties[segment.origins[sum(map(len, chunks[:number]))]].op)
