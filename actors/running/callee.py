"""A function, compiled for calls from one device, and how it is called.

One that needs nobody else and is short, with all that it calls, runs as one instruction of its caller (`run`). Any
other is started for a deferred node (`start`): its parts run on the actors of their devices, their messages go by keys
of the call's own frame, and when all have ended the results return by way of the caller's mailbox.

    caller:  launch --> Part on device 0 <--messages--> Part on device 1        (all started at once)
                            `---------- all ended: results ---------'--> mailbox of the caller --> arrival
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ...errors import InvalidArgumentError, PartitaError, ResourceExhaustedError, of_kernel
from ...rendezvous.key import frame_text
from ..plans.instructions import DEAD
from .executor import fresh_slots, run_chunk
from .interpreted_part import InterpretedPart
from .key_frames import frame_id, send_in
from .messages import Return
from .part import Part

if TYPE_CHECKING:
    from ...graph import NameAttrList
    from ...graph.dtypes import DataType
    from ...graph.library.function_library import FunctionLibrary
    from ..plans.plan import Plan
    from .device_actor import DeviceActor
    from .interpretation import Interpretation
    from .pending import PendingCall

MAX_DEPTH = 500  # calls inside calls of functions that may call themselves
_AT_ONCE = 64  # instructions of a function, and of all that it calls, that its caller runs as one

Values = Sequence[Any]  # tensors of any type
Done = Callable[[Values], None]

Homes = tuple[str, ...]
"""full names of the devices of the resources among the arguments of a call"""
Key = tuple[bytes, str, Homes | None, bool]


class Called(NamedTuple):
    """A function, or with `gradient` the one that computes its gradient, as called from a device.

    `homes` are the devices of the resources among its arguments, in their order; without, it runs as a whole on
    `device`.
    """

    function: NameAttrList
    device: str
    homes: Homes | None = None
    gradient: bool = False

    @property
    def key(self) -> Key:
        """The same for all calls that one compiled function serves."""
        return self.function.SerializeToString(deterministic=True), self.device, self.homes, self.gradient


class Callees(Protocol):
    """The functions that nodes can call, as their kernels see them."""

    @property
    def library(self) -> FunctionLibrary:
        """The functions as they are written."""

    @property
    def has_one_device(self) -> bool:
        """Whether there is only one place where anything can be."""

    def may_call_itself(self, name: str, *, gradient: bool = False) -> bool:
        """Whether a function, or the one that computes its gradient, can lead to a call of itself."""

    def callee(self, called: Called) -> Callee:
        """The function, compiled now if it was not before."""

    def find(self, called: Called) -> Callee | None:
        """A function that has been compiled, or None."""

    def home(self, value: Any, default: str) -> str:
        """The device of the resource whose handle a tensor carries; `default` for what lives on no device."""

    def device(self, name: str) -> str:
        """The full name of a device that fits `name`."""


@dataclass(frozen=True, slots=True)
class Callee:
    """A function, compiled for calls from one device.

    `size` is how many instructions a call runs, those of the functions that it calls included, as far as they are
    short themselves.
    """

    name: str
    work: tuple[tuple[Plan, DeviceActor], ...]
    argument_types: tuple[DataType, ...]
    result_types: tuple[DataType, ...]
    size: int
    may_call_itself: bool
    interpreted: tuple[Interpretation, DeviceActor] | None = None
    """in place of `work`, where only the interpreter can run a loop in the body"""

    @property
    def num_results(self) -> int:
        """How many tensors a call gives."""
        return len(self.result_types)

    @property
    def is_short(self) -> bool:
        """Whether a call runs as one instruction."""
        if self.interpreted is not None:
            return False
        if not self.work:
            return True
        plan = self.work[0][0]
        alone = len(self.work) == 1 and not plan.arrivals and not plan.deferred
        return alone and self.size <= _AT_ONCE

    def run(self, *arguments: Any) -> list[Any]:
        """Calls a short function with arguments that fit (see `call_checks`)."""
        found: list[Any] = [DEAD] * self.num_results
        for plan, _ in self.work:
            slots = fresh_slots(plan, arguments)
            for segment in plan.segments:
                for number in range(len(segment.chunks)):
                    try:
                        run_chunk(plan, segment, segment.chunks, number, slots)
                    except PartitaError as error:
                        raise error.inside(self.name) from error.__cause__
            for result in plan.results:
                found[result.index] = slots[result.slot]
        return self.alive(found)

    def start(self, call: PendingCall, arguments: Values, done: Done, turn: str = "") -> None:
        """Calls the function for a deferred node; `done` gets the results. `turn` tells calls by one node apart."""
        caller = call.part
        depth = caller.depth + self.may_call_itself
        if depth > MAX_DEPTH:
            raise ResourceExhaustedError(
                f"function {self.name!r} is called {MAX_DEPTH} calls deep; let its recursion end earlier"
            )
        frame = frame_text(frame_id(f"{caller.frame};{self.name};{call.number}{turn}"), 0)
        send = partial(send_in, call.part.step.rendezvous.send, frame)
        ended = _Gathering(self, call, done)
        if self.interpreted is not None:
            graph, actor = self.interpreted
            uncut = InterpretedPart(caller.step, graph, actor, arguments, ended, depth, call, self.name)
            uncut.start(frame)
        elif not self.work:
            done([])
        for plan, actor in self.work:
            part = Part(caller.step, plan, actor, ended, depth, call, self.name)
            actor.begin(part.step, partial(part.start, fresh_slots(plan, arguments, send), frame, ahead=True))

    def alive(self, results: list[Any]) -> list[Any]:
        """The results of a call; InvalidArgumentError if one is dead."""
        for index, value in enumerate(results):
            if value is DEAD:
                raise InvalidArgumentError(f"Retval[{index}] does not have value: function {self.name!r}")
        return results


class _Gathering:
    """Waits for all parts of a call, and hands over what they have computed."""

    __slots__ = ("_call", "_callee", "_done", "_found", "_left")

    def __init__(self, callee: Callee, call: PendingCall, done: Done) -> None:
        self._callee = callee
        self._call = call
        self._done = done
        self._found: list[Any] = [DEAD] * callee.num_results
        self._left = len(callee.work) or 1

    def __call__(self, part: Part | InterpretedPart) -> None:
        if isinstance(part, InterpretedPart):
            self._found = [part.result(index) for index in range(self._callee.num_results)]
        else:
            for result in part.plan.results:
                self._found[result.index] = part.slots[result.slot]
        self._left -= 1
        if not self._left:
            self._call.part.actor.post(Return(self._call, self))

    def hand_over(self) -> None:
        """Gives the results to whoever waits for them."""
        try:
            self._done(self._callee.alive(self._found))
        except Exception as error:  # noqa: BLE001 - a kernel may raise anything
            self._call.fail(of_kernel(self._call.op, error))
