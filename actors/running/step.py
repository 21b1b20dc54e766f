"""One step of a session over several devices: its parts, and how it ends.

Flows in: plans, feeds, a rendezvous, the actors. Flows out: filled slots, or the one error that was the first. Always
holds:

    RUNNING --all parts done--> DONE
       |
       `--fail(error)--> STOPPING --no thread works for the step any more--> FAILED
                         (rendezvous aborted; actors drop what is left of the step when they come to it)

`wait` returns in DONE and raises in FAILED, never earlier; a cancelled wait fails the step first. What is no error of
the step, a KeyboardInterrupt that a kernel raises for one, ends it too, and comes out of `wait` as it is. Outside of
worker threads actors work for a step only in code that never awaits. So when `wait` ends nobody works for the step, no
waiter is left in its rendezvous, and its tensors are garbage as soon as the caller lets go of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import ref

import outcome
import trio

from ...errors import CancelledError, InternalError, PartitaError, of_kernel
from ...rendezvous import Received
from ..plans.instructions import DEAD, PART_SLOT, TRACE_SLOT, Slots
from ..plans.output_checks import check_received
from ..plans.plan import DistributedLoop, LocalLoop
from .distributed_loops import LoopRun
from .executor import fresh_slots
from .interpreted_part import InterpretedPart, called_from
from .local_loops import run_local_loop
from .messages import RunSegment
from .pending import PendingCall, Place

if TYPE_CHECKING:
    from ...devices.kernels.registry import Start
    from ...rendezvous import Outcome, Rendezvous
    from ..plans.plan import Arrival, Plan
    from ..plans.tracing import Record
    from .device_actor import DeviceActor
    from .interpretation import Interpretation


_new_tuple: Callable[..., RunSegment] = tuple.__new__  # half the price of calling the NamedTuple


class Step:
    """See the module. `number` counts the steps of a session from 1."""

    __slots__ = (
        "_in_threads",
        "_interruption",
        "_raise_cancel",
        "_task",
        "_unfinished",
        "calls",
        "error",
        "number",
        "rendezvous",
        "waiting",
    )

    def __init__(self, number: int, rendezvous: Rendezvous) -> None:
        self.number = number
        self.rendezvous = rendezvous
        self.error: PartitaError | None = None
        self._interruption: BaseException | None = None
        self.calls: set[PendingCall] = set()
        self.waiting: dict[DeviceActor, list[tuple[Part, Slots, str]]] = {}  # parts of calls, by who will begin them
        self._unfinished = 0
        self._in_threads = 0
        self._task: trio.lowlevel.Task | None = None
        self._raise_cancel: Callable[[], object] | None = None

    def start(
        self, work: Sequence[tuple[Plan, DeviceActor]], feeds: list[object], *, with_trace: bool = False
    ) -> list[Part]:
        """Starts every plan on its actor and returns the parts; `with_trace` when they are traced plans.

        The step itself does not keep its parts, which know it: such a circle would hold every tensor of the step until
        the garbage collector comes by, gigabytes later.
        """
        send, done = self.rendezvous.send, self._part_done
        parts = [Part(self, plan, actor, done) for plan, actor in work]
        self._unfinished = len(work)
        for part in parts:
            slots = fresh_slots(part.plan, feeds, send)
            if with_trace:
                slots[TRACE_SLOT] = []
            part.start(slots)
        return parts

    def interpret(self, graph: Interpretation, actor: DeviceActor, feeds: list[object]) -> InterpretedPart:
        """Starts to interpret an uncut graph on one actor; the part that knows the results when the step is done."""
        part = InterpretedPart(self, graph, actor, feeds, self._part_done)
        self._unfinished = 1
        part.start()
        return part

    def launch(self, call: PendingCall, start: Start, inputs: Sequence[Any]) -> None:  # Any: tensors of any type
        """Starts a call, unless the step has failed: nobody would end the call then."""
        if self.error is not None:
            return
        self.calls.add(call)
        try:
            start(call, *inputs)
        except Exception as error:  # noqa: BLE001 - a kernel may raise anything
            call.fail(of_kernel(call.op, error))

    def fail(self, error: PartitaError) -> None:
        """Stops the step; the first error is the one it is remembered for."""
        if self.error is None and self._unfinished:
            self.error = error.located(step=self.number)
            try:
                self.rendezvous.abort(self.error)
            finally:  # a rendezvous tells of callbacks of others that raised, when it has called all
                calls, self.calls = self.calls, set()
                self.waiting.clear()
                for call in calls:
                    call.cancel()
                self._wake_if_settled()

    def interrupt(self, error: BaseException) -> None:
        """Stops the step for something that is not its error; `wait` raises that, unless an error was first."""
        if self.error is None:
            self._interruption = error
        self.fail(CancelledError(f"the step was interrupted by {error!r}"))

    def remark(self, text: str) -> None:
        """Adds a note to the error of the step."""
        if self.error is not None:
            self.error.add_note(text)

    def entered(self) -> None:
        """A worker thread begins to work for this step."""
        self._in_threads += 1

    def left(self) -> None:
        """A worker thread has stopped working for this step."""
        self._in_threads -= 1
        self._wake_if_settled()

    def _part_done(self, _part: Part | InterpretedPart) -> None:
        self._unfinished -= 1
        self._wake_if_settled()

    async def wait(self) -> None:
        """Returns when the step is done and raises its error when it has failed; yields only while it is neither."""
        if not self._is_settled():
            self._task = trio.lowlevel.current_task()
            await trio.lowlevel.wait_task_rescheduled(self._cancel)
        if self._interruption is not None:
            raise self._interruption
        if self.error is not None:
            raise self.error

    def _cancel(self, raise_cancel: Callable[[], object]) -> trio.lowlevel.Abort:
        """The waiting task is cancelled: stop the step, and let the cancellation go on once it is settled."""
        task, self._task = self._task, None
        self.fail(CancelledError("the task that ran the step was cancelled"))
        if self._is_settled():
            return trio.lowlevel.Abort.SUCCEEDED
        self._task, self._raise_cancel = task, raise_cancel
        return trio.lowlevel.Abort.FAILED

    def _is_settled(self) -> bool:
        return not self._in_threads and (not self._unfinished or self.error is not None)

    def _wake_if_settled(self) -> None:
        if self._task is not None and self._is_settled():
            task, self._task = self._task, None
            cancelled = self._raise_cancel
            trio.lowlevel.reschedule(task, outcome.Value(None) if cancelled is None else outcome.capture(cancelled))


class Part:
    """One plan under way on one device: the slots, and how many things each segment still waits for.

    A step has one per device, one for every loop that devices run together, which is started again for each iteration,
    and those of the functions it calls, `depth` calls deep: `call` is what called the function of that name, None in
    the graph itself. `frame` is what the keys of its messages end with, "" for those of the graph itself. `ended` is
    called once all segments have run.
    """

    __slots__ = (
        "__weakref__",
        "_ended",
        "_pending",
        "_unfinished",
        "_waits",
        "actor",
        "call",
        "depth",
        "frame",
        "function",
        "plan",
        "slots",
        "step",
    )

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
        self._waits = [segment.waits for segment in plan.segments]
        self._pending = self._waits
        self._unfinished = 0
        self._ended = ended

    def start(self, slots: Slots, frame: str = "", *, ahead: bool = False) -> None:
        """Begins with the segment that waits for nothing and asks for everything the others wait for.

        A part that has ended may be started again. What has just been served may begin `ahead` of other mail.
        """
        plan = self.plan
        self.slots = slots
        self.frame = frame
        self._pending = self._waits.copy()
        self._unfinished = len(self._pending)
        if plan.deferred:
            slots[PART_SLOT] = ref(self)  # a strong one would make a circle
        if not plan.segments[0].chunks:
            self.finished(0)
        elif not ahead:
            self.actor.post(_new_tuple(RunSegment, (self, 0, 0, None)))
        else:
            self.actor.post_first(RunSegment(self, 0))
        receive, arrived = self.step.rendezvous.recv_callback, self._arrived
        if plan.doubtful:
            for number, arrival in enumerate(plan.arrivals):
                receive(arrival.key + frame, partial(self._arrived_from_elsewhere, number, arrival))
            return
        for arrival in plan.arrivals:
            receive(arrival.key + frame, partial(arrived, arrival))

    def launch(self, number: int, inputs: Sequence[Any]) -> None:  # Any: tensors of any type
        """Starts a deferred node of the plan."""
        work: Start | LocalLoop | DistributedLoop = self.plan.deferred[number].work
        if isinstance(work, LocalLoop):
            work = partial(self._start_local_loop, work)
        elif isinstance(work, DistributedLoop):
            work = partial(self._start_distributed_loop, work)
        self.step.launch(PendingCall(self, number), work, inputs)

    def _start_local_loop(self, loop: LocalLoop, call: PendingCall, *inputs: Any) -> None:
        """Runs a loop as far as the budget lasts; the actor goes on later."""
        self.actor.go_on(call, run_local_loop(loop, inputs, self.actor.deadline, self.trace))

    def _start_distributed_loop(self, loop: DistributedLoop, call: PendingCall, *inputs: Any) -> None:
        """Begins the first iteration."""
        run = LoopRun(loop, call, inputs, self.trace)
        part = Part(self.step, loop.plan, self.actor, run.ended, self.depth, self.call, self.function)
        run.begin(part, inputs[: loop.num_variables])

    @property
    def trace(self) -> list[Record] | None:
        """What a traced step records in."""
        found: list[Record] | None = self.slots[TRACE_SLOT]
        return found

    def place_of(self, number: int) -> Place:
        """Which node a deferred one of the plan is."""
        plan = self.plan
        node = plan.deferred[number].node
        return Place(plan.names[node], plan.properties[node].op, plan.device)

    def fail(self, error: PartitaError) -> None:
        """A node of the part has failed, and the step with it."""
        self.step.fail(called_from(self.call, self.function, error))

    def skip(self, number: int) -> None:
        """A deferred node is dead."""
        node = self.plan.deferred[number]
        self.arrive(number, (DEAD,) * len(node.outputs), DEAD)

    def arrive(self, number: int, outputs: Sequence[Any], token: object = None) -> None:
        """The outputs of a deferred node are there."""
        node = self.plan.deferred[number]
        for slot, value in zip(node.outputs, outputs, strict=True):
            self.slots[slot] = value
        if node.token:
            self.slots[node.token] = token
        self._release(node.segments)

    def _arrived(self, arrival: Arrival, received: Outcome) -> None:
        if not isinstance(received, Received):
            self.step.fail(received)  # its own error, if it has one already; else somebody else ended the rendezvous
            return
        value, is_dead = received
        slot, size = arrival.slot, arrival.size
        if size == 1:
            self.slots[slot] = DEAD if is_dead else value
        else:
            self.slots[slot : slot + size] = value
        self._release(arrival.segments)

    def _arrived_from_elsewhere(self, number: int, arrival: Arrival, received: Outcome) -> None:
        """Looks at what has arrived first, if it may be of another type than its receive says."""
        plan = self.plan
        if isinstance(received, Received) and not received.is_dead:
            for slot, dtype, node in plan.doubtful.get(number, ()):
                value = received.value if arrival.size == 1 else received.value[slot - arrival.slot]
                try:
                    check_received(value, dtype)
                except InternalError as error:
                    op = plan.properties[node].op
                    self.fail(error.located(node=plan.names[node], op=op, device=plan.device))
                    return
        self._arrived(arrival, received)

    def _release(self, segments: tuple[int, ...]) -> None:
        """One of the things that `segments` wait for is there; a segment without instructions is finished at once."""
        pending = self._pending
        for segment in segments:
            left = pending[segment] - 1
            pending[segment] = left
            if left:
                continue
            if self.plan.segments[segment].chunks:
                self.actor.post(_new_tuple(RunSegment, (self, segment, 0, None)))
            else:
                self.finished(segment)

    def finished(self, segment: int) -> None:
        """A segment has run to its end."""
        unlocks = self.plan.segments[segment].unlocks
        if unlocks:
            self._release(unlocks)
        self._unfinished -= 1  # after the segments that this one finished in turn
        if not self._unfinished:
            self._ended(self)
