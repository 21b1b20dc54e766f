"""Runs a loop whose nodes are all on one device: its instructions over and over, without messages or per-frame state.

All iterations share one list of slots. Other tasks may run between two iterations once the time budget is used up; in
long iterations also between two kernels, of which the slow ones run in a worker thread (`looks`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from operator import length_hint
from typing import TYPE_CHECKING, Any

import numpy as np

from ....errors import PartitaError
from ...plans.instructions import DEAD, TRACE_SLOT, Slots, run_instructions
from ...plans.plan import LocalLoop, Segment
from ..chunks.executor import run_in_turns
from .looks import Looks

if TYPE_CHECKING:
    from ...plans.plan import LocalChoice, Plan, Stretch
    from ...plans.tracing import TraceScope
    from ..chunks.chunk import Turns
    from ..messages import TurnedWork
    from ..pacing import Pacer


def run_local_loop(loop: LocalLoop, inputs: Sequence[Any], pacer: Pacer, scope: TraceScope | None) -> TurnedWork:
    """Runs a loop and returns the values of its exits. Raises located errors.

    A traced loop records its nodes in `scope`, each iteration in a scope inside it.
    """
    slots = loop.plan.template.copy()
    slots[TRACE_SLOT] = scope
    for slot, value in zip(loop.arguments, inputs, strict=True):
        slots[slot] = value
    _store_merge_inputs(loop, slots, 0)
    plan, variables, next_values, holds = loop.plan, loop.variables, loop.next_values, loop.holds
    looks = Looks(pacer)
    looks.add(loop.segments)
    iteration, next_look, is_watched = 0, looks.next, looks.is_watched
    while True:
        # The same loop twice: a generator for both would cost more than most stretches take.
        for stretch in loop.condition:
            if is_watched or not isinstance(stretch, Segment):
                yield from _run_in_turns(plan, stretch, slots, pacer)
            else:
                _run(plan, stretch, slots)
        if not holds(slots[loop.predicate]):
            return [slots[i] for i in loop.exits]
        for stretch in loop.body:
            if is_watched or not isinstance(stretch, Segment):
                yield from _run_in_turns(plan, stretch, slots, pacer)
            else:
                _run(plan, stretch, slots)
        for slot, value in zip(variables, [slots[i] for i in next_values], strict=True):
            slots[slot] = value
        if not iteration:
            _store_merge_inputs(loop, slots, 1)
        iteration += 1
        if iteration == next_look:
            if looks.look():
                yield None
            next_look, is_watched = looks.next, looks.is_watched


def _run(plan: Plan, segment: Segment, slots: Slots) -> None:
    """Runs a segment without a look at the clock."""
    chunks = segment.chunks
    rest = iter(chunks[0] if len(chunks) == 1 else list(chain.from_iterable(chunks)))
    try:
        run_instructions(rest, slots)
    except Exception as error:  # noqa: BLE001 - a kernel may raise anything; the error is located
        located = plan.locate_error(segment, len(segment.origins) - length_hint(rest) - 1, error)
        raise located from located.__cause__


def _run_in_turns(plan: Plan, stretch: Stretch, slots: Slots, pacer: Pacer) -> Turns:
    """Runs a watched segment, a loop or a choice; if one of the inputs of these is dead, all outputs are dead."""
    if isinstance(stretch, Segment):
        yield from run_in_turns(plan, stretch, slots, pacer)
        return
    if any(slots[i] is DEAD for i in stretch.watched):
        values: Sequence[Any] = [DEAD] * len(stretch.outputs)
    else:
        inputs = [slots[i] for i in stretch.inputs]
        try:
            if isinstance(stretch.work, LocalLoop):
                values = yield from run_local_loop(stretch.work, inputs, pacer, slots[TRACE_SLOT])
            else:
                values = yield from _run_choice(stretch.work, inputs, pacer)
        except PartitaError as error:
            raise plan.leave(stretch.node, error) from error.__cause__
    for slot, value in zip(stretch.outputs, values, strict=True):
        slots[slot] = value


def _run_choice(choice: LocalChoice, inputs: Sequence[Any], pacer: Pacer) -> TurnedWork:
    """Runs the chosen branch and returns its results."""
    branch = choice.branches[choice.choose(inputs[0])]
    slots = branch.plan.template.copy()
    for slot, value in zip(branch.arguments, inputs[1:], strict=True):
        slots[slot] = value
    for stretch in branch.stretches:
        yield from _run_in_turns(branch.plan, stretch, slots, pacer)
    return [slots[i] for i in branch.results]


def _store_merge_inputs(loop: LocalLoop, slots: Slots, index: int) -> None:
    """Stores the second output of each Merge: 0, the Enter, in the first iteration, later 1, the NextIteration."""
    for slot in loop.counted:
        slots[slot] = np.int32(index)
