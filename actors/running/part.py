"""A part: one run of one plan on one device, with its slots and with what each segment still waits for.

    start                              post the segment that waits for nothing; register all receives
    a tensor arrives at the rendezvous -> store it in its slots; count down the segments that wait for it
    a deferred node has its outputs    -> the same
    a segment has run                  -> count down the segments that wait for it; after the last one the part ends

A segment whose count reaches zero is posted to the actor. For example, on a device that computes y = a + recv(b):

    segment 0: a = ...        waits 0      posted by start
    segment 1: y = a + b      waits 2      posted when segment 0 has run and b has arrived, whichever comes last
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import ref

from ...errors import InternalError, PartitaError
from ...rendezvous import Received
from ..plans.instructions import DEAD, PART_SLOT, TRACE_SLOT, Bundle, Slots
from ..plans.output_checks import check_received
from ..plans.plan import DistributedLoop, LocalLoop
from .chunks.executor import fresh_slots
from .loops.distributed import DistributedLoopRun
from .loops.local import run_local_loop
from .messages import AT_ONCE, RunSegment
from .pending import NodeNames, PendingCall, add_call_chain

if TYPE_CHECKING:
    from ...devices.kernels.registry import Start
    from ...rendezvous import Outcome
    from ..plans.plan import Plan
    from ..plans.tracing import TraceScope
    from .device_actor import DeviceActor
    from .step import Step

_new_tuple: Callable[..., RunSegment] = tuple.__new__  # half the time of calling the NamedTuple


class Part:
    """One run of one plan on one device.

    A step has a part for each device, for each device and loop that several devices run together (started again for
    each iteration), and for each device and call of a function that is not short. `call` is the deferred node that
    called `function`; they are None and "" in the graph itself. `depth` counts the recursive calls around. `frame` is
    the suffix of the keys of its messages, "" in the graph itself; `iterations` are the numbers of the iterations of
    the loops around. `ended` is called once all segments have run.
    """

    __slots__ = (
        "__weakref__",
        "_ended",
        "_pending",
        "_unfinished",
        "actor",
        "call",
        "depth",
        "frame",
        "function",
        "iterations",
        "plan",
        "slots",
        "step",
    )
    _loop_run: ClassVar[type[DistributedLoopRun]] = DistributedLoopRun

    def __init__(
        self,
        step: Step,
        plan: Plan,
        actor: DeviceActor,
        ended: Callable[[Part], None],
        depth: int = 0,
        call: PendingCall | None = None,
        function: str = "",
    ) -> None:
        self.step = step
        self.plan = plan
        self.actor = actor
        self.depth = depth
        self.call = call
        self.function = function
        self.slots: Slots = []
        self.frame = ""
        self.iterations: tuple[int, ...] = ()
        self._pending = plan.waits
        self._unfinished = 0
        self._ended = ended

    def start(self, slots: Slots, frame: str = "", *, ahead: bool = False) -> None:
        """Posts the first segment and registers all receives. A part that has ended may be started again.

        With `ahead` the first segment goes to the front of the mailbox; only for code that an actor runs.
        """
        self._begin(slots, frame, ahead=ahead)
        if self.plan.arrival_numbers:
            self._expect(list(self.plan.arrival_numbers))
            self._expect_repeated()

    def start_in_turns(self, slots: Slots) -> Iterator[None]:
        """As `start`, for the graph itself: between two turns others may run, as receives are many."""
        self._begin(slots)
        keys = list(self.plan.arrival_numbers)
        for first in range(0, len(keys), AT_ONCE):
            self._expect(keys[first : first + AT_ONCE])
            yield
        self._expect_repeated()

    def _begin(self, slots: Slots, frame: str = "", *, ahead: bool = False) -> None:
        plan = self.plan
        self.slots = slots
        self.frame = frame
        self._pending = plan.waits.copy()
        self._unfinished = len(self._pending)
        if plan.deferred:
            slots[PART_SLOT] = ref(self)  # a strong reference would be a cycle: tensors would wait for the collector
        if not plan.segments[0].chunks:
            self.finished(0)
        elif not ahead:
            self.actor.post(_new_tuple(RunSegment, (self, 0, 0, None)))
        else:
            self.actor.post_first(RunSegment(self, 0))

    def _expect(self, keys: list[str]) -> None:
        """Registers receives."""
        frame = self.frame
        self.step.rendezvous.expect([key + frame for key in keys] if frame else keys, self._arrived)

    def _expect_repeated(self) -> None:
        """Registers the further receives of keys that several have."""
        for number in self.plan.repeated:
            key = self.plan.arrivals[number].key + self.frame
            self.step.rendezvous.recv_callback(key, partial(self._arrive_at, number))

    def launch(self, number: int, inputs: Sequence[Any]) -> None:  # Any: tensors of any type
        """Starts a deferred node of the plan."""
        work: Start | LocalLoop | DistributedLoop = self.plan.deferred[number].work
        if isinstance(work, LocalLoop):
            work = partial(self._start_local_loop, work)
        elif isinstance(work, DistributedLoop):
            work = partial(self._start_distributed_loop, work)
        PendingCall(self, number).launch(work, inputs)

    def _start_local_loop(self, loop: LocalLoop, call: PendingCall, *inputs: Any) -> None:
        """Runs a loop until it ends or the time budget is used up; the actor continues it later."""
        self.actor.continue_work(call, run_local_loop(loop, inputs, self.actor.pacer, self.slots[TRACE_SLOT]))

    def _start_distributed_loop(self, loop: DistributedLoop, call: PendingCall, *inputs: Any) -> None:
        """Begins the first iteration."""
        run = self._loop_run(loop, call, inputs, self.slots[TRACE_SLOT])
        part = type(self)(self.step, loop.plan, self.actor, run.ended, self.depth, self.call, self.function)
        run.begin(part, inputs[: loop.num_variables])

    def place_of(self, number: int) -> NodeNames:
        """Name, op and device of a deferred node, by its number in the plan."""
        plan = self.plan
        node = plan.deferred[number].node
        return NodeNames(plan.names[node], plan.properties[node].op, plan.device)

    def iterations_of(self, _number: int) -> tuple[int, ...]:
        """The numbers of the iterations of the loops around, the outermost first."""
        return self.iterations

    def fail(self, error: PartitaError) -> None:
        """Fails the step with the error of a node, to which the calls that led here are added."""
        self.step.fail(add_call_chain(self.call, self.function, error))

    def skip(self, number: int) -> None:
        """Gives dead outputs to a deferred node with a dead input."""
        node = self.plan.deferred[number]
        self.arrive(number, (DEAD,) * len(node.outputs), DEAD)

    def arrive(self, number: int, outputs: Sequence[Any], flag: object = None) -> None:
        """Stores the outputs of a deferred node; `flag` is DEAD for a dead one."""
        node = self.plan.deferred[number]
        for slot, value in zip(node.outputs, outputs, strict=True):
            self.slots[slot] = value
        if node.flag:
            self.slots[node.flag] = flag
        self._release(node.segments)

    def _arrived(self, key: Hashable, received: Outcome) -> None:
        self._arrive_at(self.plan.arrival_numbers[str(key).removesuffix(self.frame)], received)

    def _arrive_at(self, number: int, received: Outcome) -> None:
        if not isinstance(received, Received):
            self.step.fail(received)  # the error of this step, or of whoever aborted the rendezvous
            return
        value, is_dead = received
        plan = self.plan
        if plan.unchecked and not is_dead and not self._has_right_types(number, value):
            return
        arrivals = plan.arrivals
        slot, size = arrivals.slots[number], arrivals.sizes[number]
        if size == 1 and type(value) is not Bundle:
            self.slots[slot] = DEAD if is_dead else value
        elif size == _num_tensors(value):
            self.slots[slot : slot + size] = value
        else:
            self.fail(_wrong_message(arrivals.keys[number] + self.frame, _num_tensors(value), size))
            return
        self._release(arrivals.segments[number])

    def _has_right_types(self, number: int, value: Any) -> bool:
        """Whether a message has the types of an arrival; fails the step if not.

        The sender was not compiled with this plan and may send others.
        """
        plan = self.plan
        first, size = plan.arrivals.slots[number], plan.arrivals.sizes[number]
        if size != _num_tensors(value):
            return True  # fails for its size
        for slot, dtype, node in plan.unchecked.get(number, ()):
            try:
                check_received(value if size == 1 else value[slot - first], dtype)
            except InternalError as error:
                self.fail(error.located(node=plan.names[node], op=plan.properties[node].op, device=plan.device))
                return False
        return True

    def _release(self, segments: tuple[int, ...]) -> None:
        """Counts down what `segments` wait for and posts those that are ready; empty ones are finished at once."""
        pending = self._pending
        for segment in segments:
            num_waits = pending[segment] - 1
            pending[segment] = num_waits
            if num_waits:
                continue
            if self.plan.segments[segment].chunks:
                self.actor.post(_new_tuple(RunSegment, (self, segment, 0, None)))
            else:
                self.finished(segment)

    def finished(self, segment: int) -> None:
        """Counts down the segments that wait for this one, and ends the part after the last."""
        unlocks = self.plan.segments[segment].unlocks
        if unlocks:
            self._release(unlocks)
        self._unfinished -= 1  # only now: releasing may have finished further segments
        if not self._unfinished:
            self._ended(self)


def _num_tensors(value: Any) -> int:  # Any: a tensor of any type, a variable, a bundle, or None for a dead tensor
    """The number of tensors in a message."""
    return len(value) if type(value) is Bundle else 1


def _wrong_message(key: str, sent: int, received: int) -> InternalError:
    return InternalError(
        f"{key}: a message of {sent} tensors was sent where one of {received} is received; two transfers of the step "
        "have the same key"
    )


def start_parts(
    step: Step,
    work: Sequence[tuple[Plan, DeviceActor]],
    feeds: list[object],
    kind: type[Part] | None = None,
    scope: TraceScope | None = None,
) -> list[Part]:
    """Starts every plan of a step on its actor and returns the parts.

    The parts of a traced step are of another `kind`, for plans with clocks, and append to the records of `scope`.
    """
    send, ended = step.rendezvous.send, step.part_ended
    parts = [(kind or Part)(step, plan, actor, ended) for plan, actor in work]
    step.begin(len(parts))
    for part in parts:
        slots = fresh_slots(part.plan, feeds, send)
        slots[TRACE_SLOT] = scope
        part.actor.start(part, slots)
    return parts
