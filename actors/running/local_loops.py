"""Runs a loop that one device has to itself: no messages, no bookkeeping, just the instructions over and over.

The event loop gets its turn between two iterations once the budget is used up. Slots are those of an iteration, which
the next one finds as they were left.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from operator import length_hint
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ..plans.instructions import DEAD, TRACE_SLOT, Slots, holds, run_instructions
from ..plans.plan import Segment

if TYPE_CHECKING:
    from ..plans.plan import Inner, LocalLoop
    from ..plans.tracing import Record

_ITERATIONS_BETWEEN_LOOKS = 16  # at the clock

Deadline = Callable[[], float]
"""when the event loop is to have its turn, on the clock of `perf_counter`"""


def run_local_loop(
    loop: LocalLoop, inputs: Sequence[Any], deadline: Deadline, trace: list[Record] | None
) -> Generator[None, None, list[Any]]:
    """Runs a loop and returns what leaves it; yields when it is time for others. Raises located errors.

    `trace` is what a traced step records in.
    """
    slots = loop.plan.template.copy()
    slots[TRACE_SLOT] = trace
    for slot, value in zip(loop.arguments, inputs, strict=True):
        slots[slot] = value
    _count(loop, slots, 0)
    variables, next_values = loop.arguments[: len(loop.next_values)], loop.next_values
    end, done = deadline(), 0
    while True:
        # A call of a generator would cost more than most stretches: these two loops are the same, written out.
        for stretch in loop.condition:
            if isinstance(stretch, Segment):
                _run(loop, stretch, slots)
            else:
                yield from _run_inner(stretch, slots, deadline)
        if not holds(slots[loop.predicate]):
            return [slots[i] for i in loop.exits]
        for stretch in loop.body:
            if isinstance(stretch, Segment):
                _run(loop, stretch, slots)
            else:
                yield from _run_inner(stretch, slots, deadline)
        for slot, value in zip(variables, [slots[i] for i in next_values], strict=True):
            slots[slot] = value
        if not done:
            _count(loop, slots, 1)
        done += 1
        if not done % _ITERATIONS_BETWEEN_LOOKS and perf_counter() > end:
            yield
            end = deadline()


def _run_inner(inner: Inner, slots: Slots, deadline: Deadline) -> Generator[None, None, None]:
    """Runs a loop in a loop once."""
    if any(slots[i] is DEAD for i in inner.watched):
        values: Sequence[Any] = [DEAD] * len(inner.outputs)
    else:
        values = yield from run_local_loop(inner.loop, [slots[i] for i in inner.inputs], deadline, slots[TRACE_SLOT])
    for slot, value in zip(inner.outputs, values, strict=True):
        slots[slot] = value


def _count(loop: LocalLoop, slots: Slots, taken: int) -> None:
    for slot in loop.counted:
        slots[slot] = np.int32(taken)


def _run(loop: LocalLoop, segment: Segment, slots: Slots) -> None:
    rest = iter(segment.chunks[0])
    try:
        run_instructions(rest, slots)
    except Exception as error:  # noqa: BLE001 - a kernel may raise anything; the caller learns where
        located = loop.plan.locate_error(segment, len(segment.origins) - length_hint(rest) - 1, error)
        raise located from located.__cause__
