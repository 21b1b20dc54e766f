"""One plan under way on one device: its slots, and what each of its segments still waits for.

start --> the segment that waits for nothing is posted to the actor, receives are asked for
a message or the outputs of a deferred node arrive --> into their slots; segments that waited for them are posted
a segment has run --> segments that waited for it are posted; after the last one the part has ended
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import ref

from ...errors import InternalError, PartitaError
from ...rendezvous import Received
from ..plans.instructions import DEAD, PART_SLOT, TRACE_SLOT, Slots
from ..plans.output_checks import check_received
from ..plans.plan import DistributedLoop, LocalLoop
from .distributed_loops import LoopRun
from .executor import fresh_slots
from .local_loops import run_local_loop
from .messages import RunSegment
from .pending import PendingCall, Place, called_from

if TYPE_CHECKING:
    from ...devices.kernels.registry import Start
    from ...rendezvous import Outcome
    from ..plans.plan import Arrival, Plan
    from ..plans.tracing import Record
    from .device_actor import DeviceActor
    from .step import Step

_new_tuple: Callable[..., RunSegment] = tuple.__new__  # half the price of calling the NamedTuple


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
        PendingCall(self, number).launch(work, inputs)

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


def start_parts(
    step: Step, work: Sequence[tuple[Plan, DeviceActor]], feeds: list[object], *, with_trace: bool = False
) -> list[Part]:
    """Starts every plan of a step on its actor and returns the parts; `with_trace` when they are traced plans."""
    send, ended = step.rendezvous.send, step.part_ended
    parts = [Part(step, plan, actor, ended) for plan, actor in work]
    step.begin(len(parts))
    for part in parts:
        slots = fresh_slots(part.plan, feeds, send)
        if with_trace:
            slots[TRACE_SLOT] = []
        part.start(slots)
    return parts
