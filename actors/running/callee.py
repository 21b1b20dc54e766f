"""A function compiled for calls from one device, and the ways of calling it.

A function is alone if it has one device, no messages and no deferred nodes. A short one, of few instructions including
those it calls, runs as a single instruction of its caller, by `Callee.run`; a loop calls all that are alone itself, by
`run_in_turns` when they take long. Any other function is started by `Callee.start` for a deferred node: each of its
plans runs as a part on the actor of its device, with keys of the call's own frame. When all parts have ended, a
`Return` message brings the results to the actor of the caller:

    caller: launch --> Part on device 0 <--tensors--> Part on device 1        (all are started at once)
                           `--------- all have ended ----------'--> mailbox of the caller --> arrival
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from ...devices.kernels.functions import TakeResults, Values
from ...devices.pipeline.bodies import ResourceDevices
from ...errors import InvalidArgumentError, PartitaError, ResourceExhaustedError, of_kernel
from ...rendezvous.key import call_number, frame_text
from ..plans.instructions import DEAD, TRACE_SLOT, Slots
from .chunks.chunk import run_chunk
from .chunks.executor import fresh_slots, run_in_turns
from .interpreted_part import InterpretedPart
from .messages import Return, TurnedWork
from .part import Part

if TYPE_CHECKING:
    from ...graph import NameAttrList
    from ...graph.dtypes import DataType
    from ...graph.library.function_library import FunctionLibrary
    from ..plans.plan import Plan, Segment
    from ..plans.tracing import TraceScope
    from .device_actor import DeviceActor
    from .interpretation import Interpretation
    from .loops.whole_body import WholeBody
    from .pacing import Pacer
    from .pending import PendingCall

MAX_DEPTH = 500  # nested calls of functions that may call themselves
_MAX_SHORT_SIZE = 64  # instructions of a short function and of those it calls


CalleeKey = tuple[bytes, str, ResourceDevices | None, bool, str]


class CalledFunction(NamedTuple):
    """What to compile: a function, or with `gradient` its gradient function, for calls from `device`.

    With `resource_devices` the placer distributes the body over devices; with None all of it runs on `device`.
    `site` tells its random generators from those of other calls: see `DeviceState`; "" for a function without any.
    """

    function: NameAttrList
    device: str
    resource_devices: ResourceDevices | None = None
    gradient: bool = False
    site: str = ""

    @property
    def key(self) -> CalleeKey:
        """Equal for calls that can share one compiled function."""
        function = self.function.SerializeToString(deterministic=True)
        return function, self.device, self.resource_devices, self.gradient, self.site


class CallTurn(NamedTuple):
    """Which call of a node it is: the number of the iteration or row; of a While whether it is the condition."""

    number: int
    is_condition: bool = False

    @property
    def text(self) -> str:
        """Different for all calls of one node: part of the keys of their messages."""
        return f":{self.number}{'c' if self.is_condition else ''}"


def iterations_in(call: PendingCall, turn: CallTurn | None) -> tuple[int, ...]:
    """The numbers of the iterations of the loops around what a call of a node calls, the outermost first."""
    return call.iterations if turn is None else (*call.iterations, turn.number)


class StartedCall(NamedTuple):
    """One call of a function: the suffix of the keys of its messages, its depth among recursive calls, and the numbers
    of the iterations of the loops around."""

    call: PendingCall
    frame: str
    depth: int
    iterations: tuple[int, ...]
    scope: TraceScope | None = None


CallEnded = Callable[["Part | InterpretedPart"], None]


class Callees(Protocol):
    """What the kernels of calls need of `functions.Functions`."""

    too_deep: set[str]
    """names of functions whose calls have been found to go too deep for a loop to take them in"""

    @property
    def library(self) -> FunctionLibrary:
        """The functions before compilation."""

    @property
    def has_one_device(self) -> bool:
        """Whether all nodes and resources are on the same device."""

    def may_call_itself(self, name: str, *, gradient: bool = False) -> bool:
        """Whether a function, or its gradient function, can lead to a call of itself."""

    def own_site(self, function: NameAttrList) -> str:
        """The site of calls that share the random generators of a function; "" for a function without any."""

    def callee(self, called: CalledFunction) -> Callee:
        """The compiled function; compiles it on the first call."""

    def find_compiled(self, called: CalledFunction) -> Callee | None:
        """The function if it has been compiled, else None."""

    def whole_body(self, called: CalledFunction) -> WholeBody | None:
        """The body of a function that runs as a whole on its caller's device, for a plan that takes it in."""

    def resource_device(self, value: Any, default: str) -> str:
        """The device of the resource that a handle refers to; `default` if the tensor is no such handle."""

    def device(self, name: str, base: str) -> str:
        """The full name of a device, open parts as in `base`."""


@dataclass(frozen=True, slots=True)
class Callee:
    """A compiled function: a plan for each device it runs on.

    `size` is the number of instructions that a call runs, including those of short functions it calls.
    """

    name: str
    work: tuple[tuple[Plan, DeviceActor], ...]
    argument_types: tuple[DataType, ...]
    result_types: tuple[DataType, ...]
    size: int
    may_call_itself: bool
    interpreted: tuple[Interpretation, DeviceActor] | None = None
    """instead of `work`, for a body with a loop that only the interpreter can run"""
    _part: ClassVar[type[Part]] = Part
    _interpreted_part: ClassVar[type[InterpretedPart]] = InterpretedPart

    @property
    def num_results(self) -> int:
        """The number of results of a call."""
        return len(self.result_types)

    @property
    def is_alone(self) -> bool:
        """Whether one device runs it without waiting for anything, so that `run_in_turns` may call it."""
        if self.interpreted is not None:
            return False
        if not self.work:
            return True
        plan = self.work[0][0]
        return len(self.work) == 1 and not plan.arrivals and not plan.deferred

    @property
    def is_short(self) -> bool:
        """Whether a call runs as one instruction of the caller."""
        return self.size <= _MAX_SHORT_SIZE and self.is_alone

    @property
    def segments(self) -> Iterator[Segment]:
        """What a function that is alone runs, in order."""
        return (segment for plan, _ in self.work for segment in plan.segments)

    def run(self, *arguments: Any) -> list[Any]:
        """Calls a function that is alone and takes no long time, with arguments that `call_checks` has accepted."""
        results: list[Any] = [DEAD] * self.num_results
        for plan, _ in self.work:
            slots = fresh_slots(plan, arguments)
            for segment in plan.segments:
                chunks = segment.chunks  # in a worker thread: other calls may replace them meanwhile
                for number in range(len(chunks)):
                    try:
                        run_chunk(plan, segment, chunks, number, slots)
                    except PartitaError as error:
                        raise error.inside(self.name) from error.__cause__
            _store_results(plan, slots, results)
        return self.checked_results(results)

    def run_in_turns(self, arguments: Values, pacer: Pacer) -> TurnedWork:
        """As `run`, for any function that is alone: other tasks may run in between, and slow kernels in a thread."""
        results: list[Any] = [DEAD] * self.num_results
        for plan, _ in self.work:
            slots = fresh_slots(plan, arguments)
            try:
                for segment in plan.segments:
                    yield from run_in_turns(plan, segment, slots, pacer)
            except PartitaError as error:
                raise error.inside(self.name) from error.__cause__
            _store_results(plan, slots, results)
        return self.checked_results(results)

    def start(self, call: PendingCall, arguments: Values, done: TakeResults, turn: CallTurn | None = None) -> None:
        """Calls the function for a deferred node; `done` gets the results.

        `turn` tells the calls of a loop or a map apart.
        """
        run = self.run_of(call, turn)
        if self.interpreted is None and not self.work:
            done([])
        else:
            self.begin(run, arguments, ResultCollector(self, call, done, len(self.work) or 1))

    def run_of(self, call: PendingCall, turn: CallTurn | None) -> StartedCall:
        """What tells one call from others; ResourceExhaustedError if it is too deep."""
        caller, scope = call.part, self._scope_of(call, turn)
        depth, text = self.depth_of(call), "" if turn is None else turn.text
        frame = frame_text(call_number(caller.frame, caller.actor.name, call.number, text), 0)
        return StartedCall(call, frame, depth, iterations_in(call, turn), scope)

    def begin(self, run: StartedCall, arguments: Values, ended: CallEnded) -> None:
        """Starts all parts of a call; `ended` gets each when it has ended."""
        call, frame, depth, iterations, scope = run
        step = call.part.step
        if self.interpreted is not None:
            graph, actor = self.interpreted
            uncut = self._interpreted_part(step, graph, actor, arguments, ended, depth, call, self.name, scope=scope)
            uncut.iterations = iterations
            uncut.start(frame)
        send = partial(_send_in_frame, step.rendezvous.send, frame)
        for plan, actor in self.work:
            part = self._part(step, plan, actor, ended, depth, call, self.name)
            part.iterations = iterations
            slots = fresh_slots(plan, arguments, send)
            slots[TRACE_SLOT] = scope
            actor.begin(step, partial(part.start, slots, frame, ahead=True))

    def _scope_of(self, _call: PendingCall, _turn: CallTurn | None) -> TraceScope | None:
        """The scope of a call in a traced step."""
        return None

    def depth_of(self, call: PendingCall) -> int:
        """The depth of one call; ResourceExhaustedError if it is too deep."""
        depth = call.part.depth + self.may_call_itself
        if depth > MAX_DEPTH:
            raise ResourceExhaustedError(
                f"function {self.name!r} is called {MAX_DEPTH} calls deep; let its recursion end earlier"
            )
        return depth

    def checked_results(self, results: list[Any]) -> list[Any]:
        """The results themselves; InvalidArgumentError if one is dead."""
        for index, value in enumerate(results):
            if value is DEAD:
                raise InvalidArgumentError(f"Retval[{index}] does not have value: function {self.name!r}")
        return results


class ResultCollector:
    """Collects the results of the parts of a call, and posts `Return` when the last of `num_running` has ended."""

    __slots__ = ("_call", "_callee", "_done", "_num_running", "_results")

    def __init__(self, callee: Callee, call: PendingCall, done: TakeResults, num_running: int) -> None:
        self._callee = callee
        self._call = call
        self._done = done
        self._results: list[Any] = [DEAD] * callee.num_results
        self._num_running = num_running

    def __call__(self, part: Part | InterpretedPart) -> None:
        store_results(part, self._results)
        self._part_ended()

    def returned(self, results: Mapping[int, Any]) -> None:
        """Takes the results of parts that have ended in another process, by number."""
        for index, value in results.items():
            self._results[index] = value
        self._part_ended()

    def _part_ended(self) -> None:
        self._num_running -= 1
        if not self._num_running:
            self._call.part.actor.post(Return(self._call, self))

    def deliver(self) -> None:
        """Passes the results to the caller, in its actor's turn."""
        try:
            self._done(self._callee.checked_results(self._results))
        except Exception as error:  # noqa: BLE001 - a kernel may raise anything
            self._call.fail(of_kernel(self._call.op, error))


def store_results(part: Part | InterpretedPart, results: list[Any]) -> None:
    """Stores those of the results that a part has computed."""
    if isinstance(part, InterpretedPart):
        results[:] = [part.result(index) for index in range(len(results))]
    else:
        _store_results(part.plan, part.slots, results)


def _store_results(plan: Plan, slots: Slots, results: list[Any]) -> None:
    for result in plan.results:
        results[result.index] = slots[result.slot]


def _send_in_frame(send: Callable[..., None], frame: str, stem: str, value: Any, is_dead: bool = False) -> None:
    """Sends under the key that a stem and the frame of a call make."""
    send(stem + frame, value, is_dead)
