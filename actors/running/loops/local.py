"""Runs a loop whose nodes are all on one device: its instructions over and over, without messages or per-frame state.

All iterations share one list of slots. Other tasks may run between two iterations once the time budget is used up.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from operator import length_hint
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ...plans.instructions import DEAD, TRACE_SLOT, Slots, holds, run_instructions
from ...plans.plan import Segment

if TYPE_CHECKING:
    from ...plans.plan import Inner, LocalLoop
    from ...plans.tracing import Scope

_ITERATIONS_BETWEEN_LOOKS = 16  # at the clock

Deadline = Callable[[], float]
"""when other tasks must run next, in seconds on the clock of `perf_counter`"""


def run_local_loop(
    loop: LocalLoop, inputs: Sequence[Any], deadline: Deadline, scope: Scope | None
) -> Generator[None, None, list[Any]]:
    """Runs a loop and returns the values of its exits; yields when other tasks must run. Raises located errors.

    A traced loop records its nodes in `scope`, each iteration in a scope inside it.
    """
    slots = loop.plan.template.copy()
    slots[TRACE_SLOT] = scope
    for slot, value in zip(loop.arguments, inputs, strict=True):
        slots[slot] = value
    _store_merge_inputs(loop, slots, 0)
    variables, next_values = loop.arguments[: len(loop.next_values)], loop.next_values
    end, iteration = deadline(), 0
    while True:
        # The same loop twice: a generator for both would cost more than most stretches take.
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
        if not iteration:
            _store_merge_inputs(loop, slots, 1)
        iteration += 1
        if not iteration % _ITERATIONS_BETWEEN_LOOKS and perf_counter() > end:
            yield
            end = deadline()


def _run_inner(inner: Inner, slots: Slots, deadline: Deadline) -> Generator[None, None, None]:
    """Runs an inner loop; a dead input makes all its outputs dead."""
    if any(slots[i] is DEAD for i in inner.watched):
        values: Sequence[Any] = [DEAD] * len(inner.outputs)
    else:
        values = yield from run_local_loop(inner.loop, [slots[i] for i in inner.inputs], deadline, slots[TRACE_SLOT])
    for slot, value in zip(inner.outputs, values, strict=True):
        slots[slot] = value


def _store_merge_inputs(loop: LocalLoop, slots: Slots, index: int) -> None:
    """Stores the second output of each Merge: 0, the Enter, in the first iteration, later 1, the NextIteration."""
    for slot in loop.counted:
        slots[slot] = np.int32(index)


def _run(loop: LocalLoop, segment: Segment, slots: Slots) -> None:
    rest = iter(segment.chunks[0])
    try:
        run_instructions(rest, slots)
    except Exception as error:  # noqa: BLE001 - a kernel may raise anything; the error is located
        located = loop.plan.locate_error(segment, len(segment.origins) - length_hint(rest) - 1, error)
        raise located from located.__cause__
