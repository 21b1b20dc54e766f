"""Runs one device's share of a loop that several devices run together.

The share is a plan of one iteration. A device begins iteration k + 1 when its own iteration k has ended, so devices may
be in different iterations; keys with frame and iteration keep their messages apart. On each device:

    begin iteration k: store variables and invariants in fresh slots, register the receives of (frame, k)
         |<----------------------- all next values are alive ------------------------.
         `--> segments run as tensors arrive --> all have run: keep the values of live exits
                                                 `--- all next values are dead --> the loop is done

For example `while i < n` with the condition on CPU:0 and the body on CPU:1: in iteration k CPU:0 sends the predicate
with the suffix of (frame, k). The Switch nodes of both devices depend on it, so on both devices the next values are
alive, or on both they are dead.

The counter's device waits for nobody. Yet it does not run away: it begins iteration k + p, where p is the attr
`parallel_iterations` of the loop, only when the others have begun iteration k, and so received what it sent in that. A
device that has begun the fewest iterations never waits in this way, so some device always goes on.

A loop whose inputs are dead runs one iteration too, with dead values, because other devices wait for its sends.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ....errors import UnimplementedError
from ....rendezvous.key import frame_text, loop_number
from ...plans.instructions import DEAD, SEND_SLOT, TRACE_SLOT, Slots

if TYPE_CHECKING:
    from ...plans.plan import DistributedLoop
    from ...plans.tracing import TraceScope
    from ..pending import PendingCall

_FIRST, _LATER = np.int32(0), np.int32(1)  # second output of a Merge: the number of its live input


class IterationRunner(Protocol):
    """What a loop needs of the `Part` that runs its iterations."""

    slots: Slots
    iterations: tuple[int, ...]

    def start(self, slots: Slots, frame: str) -> None:
        """Starts an iteration on these slots."""


class DistributedLoopRun:
    """One execution of a loop on one device.

    It gets its part as an argument and keeps no reference to it, which refers back: the cycle would keep the tensors
    of the loop alive until the garbage collector runs.
    """

    __slots__ = (
        "_around",
        "_call",
        "_exits",
        "_frame",
        "_frame_id",
        "_iteration",
        "_loop",
        "_send",
        "_template",
        "_when_taken",
    )

    def __init__(
        self, loop: DistributedLoop, call: PendingCall, inputs: Sequence[Any], scope: TraceScope | None
    ) -> None:
        """`inputs` are the initial variables, then the invariants. `scope` is that of the loop in a traced step."""
        self._loop = loop
        self._call = call
        self._send = call.step.rendezvous.send
        self._when_taken = call.step.rendezvous.when_taken
        self._template = loop.plan.template.copy()
        self._template[TRACE_SLOT] = scope
        for slot, value in zip(loop.arguments[loop.num_variables :], inputs[loop.num_variables :], strict=True):
            self._template[slot] = value
        self._exits: list[Any] = [DEAD] * len(loop.exits)
        self._iteration = 0
        self._around = call.iterations
        self._frame_id = loop_number(call.part.frame, loop.frame)
        self._frame = ""

    def begin(self, part: IterationRunner, variables: Sequence[Any]) -> None:
        """Starts the next iteration, with these values of the variables."""
        loop, iteration = self._loop, self._iteration
        self._iteration = iteration + 1
        self._frame = frame = frame_text(self._frame_id, iteration)
        slots = self._template.copy()
        slots[SEND_SLOT] = self.send
        for slot, value in zip(loop.arguments, variables, strict=False):
            slots[slot] = value
        for slot in loop.counted:
            slots[slot] = _LATER if iteration else _FIRST
        part.iterations = (*self._around, iteration)
        part.start(slots, frame)

    def go_on(self, part: IterationRunner, variables: Sequence[Any]) -> None:
        """Begins the next iteration as soon as messages of the iteration `parallel` before it have been received."""
        oldest = self._iteration - self._loop.parallel
        if oldest >= 0 and self._loop.awaited:
            frame = frame_text(self._frame_id, oldest)
            for stem in self._loop.awaited:
                if self._when_taken(stem + frame, partial(self.go_on, part, variables)):
                    return
        self.begin(part, variables)

    def send(self, key: str, value: Any, is_dead: bool = False) -> None:
        """Sends under the key of the current iteration."""
        self._send(key + self._frame, value, is_dead)

    def ended(self, part: IterationRunner) -> None:
        """Called at the end of an iteration: starts the next one, or ends the loop with the values of its exits."""
        loop, slots = self._loop, part.slots
        variables = loop.next_values(slots)
        for number, slot in loop.exits:
            if slots[slot] is not DEAD:
                self._exits[number] = slots[slot]
        num_dead = 0
        for value in variables:
            if value is DEAD:
                num_dead += 1
        if not num_dead:
            self.go_on(part, variables)
        elif num_dead == len(variables):
            self._call.done(*self._exits)
        else:
            self._call.fail(
                UnimplementedError(
                    f"some variables of loop {loop.frame!r} go on after iteration {self._iteration - 1} and some do "
                    "not; let the same predicate decide for all",
                    frame=loop.frame,
                )
            )
