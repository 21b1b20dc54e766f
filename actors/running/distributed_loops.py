"""Loops that several devices run together, each its share: iterations as plans of their own, driven by what arrives.

Flows in: the plan of what one device does in an iteration. Flows out: a `DistributedLoop`, started like any deferred
node. Always holds: an iteration begins on a device when the one before it has ended there; its messages go by keys that
name the frame and the iteration, so devices need not be in the same one; a loop has ended when no variable goes on.

    begin iteration k: variables and invariants in their slots, receives of (frame, k) asked for
         |<------------------------ all next values alive ------------------------.
         `--> segments run as messages arrive --> all have ended: exits that are alive are what leaves the loop
                                                                                  `--- none alive --> done

A device that does not have the loop's condition follows the one that has: it receives the predicate every iteration.
Even a loop that nothing alive goes into runs one iteration, dead: others wait for what it sends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import UnimplementedError
from ..plans.instructions import DEAD, SEND_SLOT, TRACE_SLOT, picker
from .step import Part, frame_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..plans.instructions import Slots
    from ..plans.levels import Loop
    from ..plans.plan import Plan
    from .deferred import PendingCall

_FIRST, _LATER = np.int32(0), np.int32(1)  # the input that a Merge took


@dataclass(frozen=True, slots=True)
class DistributedLoop:
    """A device's share in a loop. Slots are those of `plan`; see `levels.Loop` for what goes in and out.

    `arguments` are where the variables, then the invariants are put; `next_values` picks what an iteration leaves for
    the next; `exits` are, by number, where it leaves what leaves the loop.
    """

    frame: str
    plan: Plan
    num_variables: int
    arguments: tuple[int, ...]
    counted: tuple[int, ...]
    next_values: Callable[[Slots], Sequence[Any]]
    exits: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, loop: Loop, plan: Plan) -> DistributedLoop:
        """The loop whose iterations `plan` computes."""
        slot_of = {argument.index: argument.slot for argument in plan.arguments}
        entering = loop.num_variables + loop.num_invariants
        arguments = tuple(slot_of[index] for index in range(entering))
        counted = tuple(slot_of[index] for index in range(entering, entering + loop.num_counted))
        results = {result.index: result.slot for result in plan.results}
        variables = [results[index] for index in range(loop.num_variables)]
        exits = tuple((number, results[loop.num_variables + number]) for number in range(loop.num_exits))
        return cls(loop.name, plan, loop.num_variables, arguments, counted, picker(variables), exits)

    def start(self, call: PendingCall, *inputs: Any) -> None:  # Any: tensors of any type
        """Begins the first iteration."""
        caller, run = call.part, _Run(self, call, inputs)
        part = Part(caller.step, self.plan, caller.actor, run.ended, caller.depth, caller.call, caller.function)
        run.begin(part, inputs[: self.num_variables])


class _Run:
    """One execution of a loop on one device. It does not know its part, which knows it: that would be a circle."""

    __slots__ = ("_call", "_exits", "_frame", "_frame_id", "_iteration", "_loop", "_send", "_template")

    def __init__(self, loop: DistributedLoop, call: PendingCall, inputs: Sequence[Any]) -> None:
        self._loop = loop
        self._call = call
        self._send = call.part.step.rendezvous.send
        self._template = loop.plan.template.copy()
        self._template[TRACE_SLOT] = call.part.trace
        for slot, value in zip(loop.arguments[loop.num_variables :], inputs[loop.num_variables :], strict=True):
            self._template[slot] = value
        self._exits: list[Any] = [DEAD] * len(loop.exits)
        self._iteration = 0
        self._frame_id = f"{frame_id(f'{call.part.frame};{loop.frame}')}:"
        self._frame = ""

    def begin(self, part: Part, variables: Sequence[Any]) -> None:
        """Begins an iteration with these values of the variables."""
        loop, iteration = self._loop, self._iteration
        self._iteration = iteration + 1
        self._frame = frame = self._frame_id + str(iteration)
        slots = self._template.copy()
        slots[SEND_SLOT] = self.send
        for slot, value in zip(loop.arguments, variables, strict=False):
            slots[slot] = value
        for slot in loop.counted:
            slots[slot] = _LATER if iteration else _FIRST
        part.start(slots, frame)

    def send(self, key: str, value: Any, is_dead: bool = False) -> None:
        """Sends something of the iteration that is under way."""
        self._send(key + self._frame, value, is_dead)

    def ended(self, part: Part) -> None:
        """An iteration has ended: goes on, or hands over what has left the loop."""
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
            self.begin(part, variables)
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
