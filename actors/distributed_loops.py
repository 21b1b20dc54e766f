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
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import UnimplementedError
from .instructions import DEAD, SEND_SLOT
from .step import Part, send_in

if TYPE_CHECKING:
    from .deferred import PendingCall
    from .levels import Loop
    from .plan import Plan


@dataclass(frozen=True, slots=True)
class DistributedLoop:
    """A device's share in a loop. Slots are those of `plan`; see `levels.Loop` for what goes in and out."""

    frame: str
    plan: Plan
    num_variables: int
    arguments: tuple[int, ...]
    counted: tuple[int, ...]
    results: tuple[int, ...]

    @classmethod
    def of(cls, loop: Loop, plan: Plan) -> DistributedLoop:
        """The loop whose iterations `plan` computes."""
        slot_of = {argument.index: argument.slot for argument in plan.arguments}
        entering = loop.num_variables + loop.num_invariants
        arguments = tuple(slot_of[index] for index in range(entering))
        counted = tuple(slot_of[index] for index in range(entering, entering + loop.num_counted))
        results = {result.index: result.slot for result in plan.results}
        in_order = tuple(results[index] for index in range(loop.num_variables + loop.num_exits))
        return cls(loop.name, plan, loop.num_variables, arguments, counted, in_order)

    def start(self, call: PendingCall, *inputs: Any) -> None:  # Any: tensors of any type
        """Begins the first iteration."""
        _Run(self, call, inputs).begin(inputs[: self.num_variables])


class _Run:
    """One execution of a loop on one device."""

    __slots__ = ("_call", "_exits", "_frame_id", "_invariants", "_iteration", "_loop")

    def __init__(self, loop: DistributedLoop, call: PendingCall, inputs: Sequence[Any]) -> None:
        self._loop = loop
        self._call = call
        self._invariants = inputs[loop.num_variables :]
        self._exits = [DEAD] * (len(loop.results) - loop.num_variables)
        self._iteration = 0
        instance = f"{call.part.frame};{loop.frame}"
        self._frame_id = int.from_bytes(blake2b(instance.encode(), digest_size=8).digest(), "big")

    def begin(self, variables: Sequence[Any]) -> None:
        """Begins an iteration with these values of the variables."""
        loop, caller = self._loop, self._call.part
        step = caller.step
        frame = f"{self._frame_id}:{self._iteration}"
        slots = loop.plan.template.copy()
        slots[SEND_SLOT] = partial(send_in, step.rendezvous.send, frame)
        for slot, value in zip(loop.arguments, (*variables, *self._invariants), strict=True):
            slots[slot] = value
        for slot in loop.counted:
            slots[slot] = np.int32(self._iteration > 0)
        Part(step, loop.plan, caller.actor, slots, self._ended, frame, caller.depth).start()

    def _ended(self, part: Part) -> None:
        """An iteration has ended: goes on, or hands over what has left the loop."""
        loop = self._loop
        results = [part.slots[slot] for slot in loop.results]
        variables = results[: loop.num_variables]
        for number, value in enumerate(results[loop.num_variables :]):
            if value is not DEAD:
                self._exits[number] = value
        num_alive = sum(value is not DEAD for value in variables)
        if not num_alive:
            self._call.done(*self._exits)
        elif num_alive == len(variables):
            self._iteration += 1
            self.begin(variables)
        else:
            self._call.fail(
                UnimplementedError(
                    f"some variables of loop {loop.frame!r} go on after iteration {self._iteration} and some do not; "
                    "let the same predicate decide for all",
                    frame=loop.frame,
                )
            )
