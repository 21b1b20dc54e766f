"""Runs a device's share in a loop: iterations as plans of their own, driven by what arrives.

An iteration begins on a device when the one before it has ended there. Its messages go by keys that name the frame and
the iteration, so devices need not be in the same one. A loop has ended when no variable goes on.

    begin iteration k: variables and invariants in their slots, receives of (frame, k) asked for
         |<------------------------ all next values alive ------------------------.
         `--> segments run as messages arrive --> all have ended: exits that are alive are what leaves the loop
                                                                                  `--- none alive --> done

Even a loop that nothing alive goes into runs one iteration, dead: others wait for what it sends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ...errors import UnimplementedError
from ...rendezvous.key import frame_text
from ..plans.instructions import DEAD, SEND_SLOT, TRACE_SLOT, Slots
from .key_frames import frame_id

if TYPE_CHECKING:
    from ..plans.plan import DistributedLoop
    from ..plans.tracing import Record
    from .pending import PendingCall

_FIRST, _LATER = np.int32(0), np.int32(1)  # the input that a Merge took


class Iterations(Protocol):
    """The part of a step that runs one iteration after the other."""

    slots: Slots

    def start(self, slots: Slots, frame: str) -> None:
        """Begins an iteration."""


class LoopRun:
    """One execution of a loop on one device. It does not know its part, which knows it: that would be a circle."""

    __slots__ = ("_call", "_exits", "_frame", "_frame_id", "_iteration", "_loop", "_send", "_template")

    def __init__(
        self, loop: DistributedLoop, call: PendingCall, inputs: Sequence[Any], trace: list[Record] | None
    ) -> None:
        """`trace` is what a traced step records in."""
        self._loop = loop
        self._call = call
        self._send = call.step.rendezvous.send
        self._template = loop.plan.template.copy()
        self._template[TRACE_SLOT] = trace
        for slot, value in zip(loop.arguments[loop.num_variables :], inputs[loop.num_variables :], strict=True):
            self._template[slot] = value
        self._exits: list[Any] = [DEAD] * len(loop.exits)
        self._iteration = 0
        self._frame_id = frame_id(f"{call.part.frame};{loop.frame}")
        self._frame = ""

    def begin(self, part: Iterations, variables: Sequence[Any]) -> None:
        """Begins an iteration with these values of the variables."""
        loop, iteration = self._loop, self._iteration
        self._iteration = iteration + 1
        self._frame = frame = frame_text(self._frame_id, iteration)
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

    def ended(self, part: Iterations) -> None:
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
