"""For: calls its body once per number from `start` up, or down, to `limit`, with the number and the loop's variables.

    For(0, 6, 2, x), body f          f(0, x) -> x1, f(2, x1) -> x2, f(4, x2) -> the output

A body that runs alone on its device is called in turns; of any other the end of each call starts the next.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ....devices.kernels.functions import Values
from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.analysis.loop_values import numbers_of_for
from ..callee import Callee, CallTurn
from .looks import Looks

if TYPE_CHECKING:
    from ..messages import TurnedWork
    from ..pacing import Pacer
    from ..pending import PendingCall

BodyOfTurn = Callable[[Values], "Callee"]

_BOUNDS = ("start", "limit", "delta")


@dataclass(frozen=True, slots=True)
class ForKernel:
    """`once` and `repeated` give the body for a loop of one turn and of several, whose results must fit differently.

    `check` raises what a body that cannot be instantiated raises: a loop without turns fails for it too.
    """

    once: BodyOfTurn
    repeated: BodyOfTurn
    check: Callable[[], object]

    def start(self, call: PendingCall, start: Any, limit: Any, delta: Any, *variables: Any) -> None:
        """Starts the deferred node. InvalidArgumentError for bounds that are no scalars, or that no step connects."""
        for name, bound in zip(_BOUNDS, (start, limit, delta), strict=True):
            if np.ndim(bound):
                raise InvalidArgumentError(f"{name} must be a scalar, but {shape_text(np.shape(bound))}")
        numbers = numbers_of_for(int(start), int(limit), int(delta))
        if not numbers:
            self.check()
            call.done(*variables)
            return
        body = (self.repeated if len(numbers) > 1 else self.once)([np.int32(numbers[0]), *variables])
        if body.is_alone:
            call.part.actor.continue_work(call, _turns(body, numbers, variables, call.part.actor.pacer))
        else:
            _LongFor(call, body, numbers).go_on(variables)


def _turns(body: Callee, numbers: range, values: Values, pacer: Pacer) -> TurnedWork:
    """Runs a loop whose body is alone; long bodies in turns with other tasks."""
    looks = Looks(pacer)
    looks.add(body.segments)
    is_watched = looks.is_watched or not body.is_short
    for turn, number in enumerate(numbers, 1):
        arguments = [np.int32(number), *values]
        values = (yield from body.run_in_turns(arguments, pacer)) if is_watched else body.run(*arguments)
        if turn == looks.next:
            if looks.look():
                yield None
            is_watched = looks.is_watched
    return values


class _LongFor:
    """A loop whose body has several devices, or waits: the end of each call starts the next."""

    __slots__ = ("_body", "_call", "_numbers", "_turn")

    def __init__(self, call: PendingCall, body: Callee, numbers: range) -> None:
        self._call = call
        self._body = body
        self._numbers = numbers
        self._turn = 0

    def go_on(self, values: Values) -> None:
        """Calls the body on these values, or ends the loop with them."""
        turn = self._turn
        if turn == len(self._numbers):
            self._call.done(*values)
            return
        self._turn += 1
        self._body.start(self._call, [np.int32(self._numbers[turn]), *values], self.go_on, CallTurn(turn))
