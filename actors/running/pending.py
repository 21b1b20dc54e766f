"""One run of a deferred node in a step: from the launch of its kernel until its outputs have arrived.

    LAUNCHED --done(outputs)--> the outputs are stored, and segments that waited for them continue
        |------fail(error)----> the step fails
        `------the step fails--> CANCELLED: the callbacks given to `on_cancel` are called, later ones at once

A run ends once; `done` and `fail` do nothing after that. A kernel that waits for the next second, for example:

    def start(call, value):                      call: this PendingCall
        call.after(1.0, lambda: call.done(value))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import trio

from ...errors import of_kernel
from ...graph.ops.record import record_of
from .messages import Resume
from .threads import run_in_thread

if TYPE_CHECKING:
    from ...devices.kernels.functions import Function, NamedFunction, Scope
    from ...devices.kernels.registry import Start
    from ...errors import PartitaError
    from .device_actor import DeviceActor
    from .step import Step


T = TypeVar("T")


class NodeNames(NamedTuple):
    """Names of a node, its op and its device, for error messages."""

    node: str
    op: str
    device: str


class NodeHost(Protocol):
    """What a deferred node needs of the `Part` or `InterpretedPart` it is in; nodes go by number.

    The part runs `function` for `call`; they are "" and None in the graph itself. `depth` counts the recursive calls
    around; `frame` is the suffix of the keys of its messages.
    """

    step: Step
    actor: DeviceActor
    depth: int
    function: str
    frame: str

    @property
    def call(self) -> PendingCall | None:
        """The call that runs `function`."""

    def place_of(self, number: int) -> NodeNames:
        """Name, op and device of a deferred node."""

    def iterations_of(self, number: int) -> tuple[int, ...]:
        """The numbers of the iterations of the loops around a deferred node that runs, the outermost first."""

    def arrive(self, number: int, outputs: Sequence[Any]) -> None:
        """Stores the outputs of a deferred node."""

    def fail(self, error: PartitaError) -> None:
        """Fails the step with the error of a node."""


class PendingCall:
    """One run of a deferred node: what kernels get as `devices.kernels.registry.Call`."""

    __slots__ = ("_is_cancelled", "_on_cancel", "is_ended", "number", "part")

    def __init__(self, part: NodeHost, number: int) -> None:
        self.part = part
        self.number = number
        self.is_ended = False
        self._is_cancelled = False
        self._on_cancel: list[Callable[[], None]] = []

    def launch(self, start: Start, inputs: Sequence[Any]) -> None:
        """Calls the kernel, unless the step has failed: its cancellation is over, so the run would never end."""
        step = self.part.step
        if step.error is not None:
            return
        step.calls.add(self)
        try:
            start(self, *inputs)
        except Exception as error:  # noqa: BLE001 - a kernel may raise anything
            self.fail(of_kernel(self.op, error))

    @property
    def step(self) -> Step:
        """The step of the node."""
        return self.part.step

    @property
    def op(self) -> str:
        """The op of the node."""
        return self.place.op

    @property
    def place(self) -> NodeNames:
        """Name, op and device of the node."""
        return self.part.place_of(self.number)

    @property
    def iterations(self) -> tuple[int, ...]:
        """The numbers of the iterations of the loops around, the outermost first."""
        return self.part.iterations_of(self.number)

    def done(self, *outputs: Any) -> None:  # Any: tensors of any type
        """Ends the run with the outputs of the node."""
        if self._end():
            self.part.arrive(self.number, outputs)

    def fail(self, error: PartitaError) -> None:
        """Ends the run and fails the step with the error, which is located at the node."""
        if self._end():
            node, op, device = self.place
            self.part.fail(error.located(node=node, op=op, device=device))

    def after(self, seconds: float, callback: Callable[[], None]) -> None:
        """Calls `callback` after so many seconds of trio's clock, unless the step ends before."""
        # Shielded like the actors, whose nursery it runs in: the end of its step ends it, before the session ends.
        scope = trio.CancelScope(deadline=trio.current_time() + seconds, shield=True)
        self.on_cancel(scope.cancel)
        self.part.actor.start_soon(self._wait, scope, callback, name=f"timer of step {self.step.number}")

    @trio.lowlevel.enable_ki_protection
    async def _wait(self, scope: trio.CancelScope, callback: Callable[[], None]) -> None:
        """The task of a timer. The deadline cancels `scope`, and so does the end of the step."""
        with scope:
            await trio.sleep_forever()
        if self.is_ended:
            return
        try:
            callback()
        except Exception as error:  # noqa: BLE001 - a kernel may raise anything
            self.fail(of_kernel(self.op, error))
        self.part.actor.group.look_for_deadlocks()

    def on_cancel(self, callback: Callable[[], None]) -> None:
        """Calls `callback` if the step fails before the run ends, at once if it has failed already."""
        if self._is_cancelled:
            callback()
        else:
            self._on_cancel.append(callback)

    def when_stuck(self, callback: Callable[[], None]) -> None:
        """Calls `callback` if nothing of the step can go on before the run ends."""
        step, group = self.part.step, self.part.actor.group
        step.when_stuck(self, callback)
        group.watched.add(step)
        self.on_cancel(partial(group.watched.discard, step))

    def compute(self, work: Callable[[], T], then: Callable[[T], None], *, in_thread: bool) -> None:
        """Calls `then` with what `work` returns, which a thread computes if it takes long."""
        if in_thread:
            self.part.actor.start_soon(self._compute, work, then, name=f"thread of step {self.step.number}")
        else:
            then(work())

    @trio.lowlevel.enable_ki_protection
    async def _compute(self, work: Callable[[], T], then: Callable[[T], None]) -> None:
        """The task of a thread, which the end of the step waits for. Shielded like the actors."""
        step = self.part.step
        step.thread_began()
        try:
            with trio.CancelScope(shield=True):
                result = await run_in_thread(work)
            if not self.is_ended:
                then(result)
        except Exception as error:  # noqa: BLE001 - a kernel may raise anything
            self.fail(of_kernel(self.op, error))
        except BaseException as error:  # noqa: BLE001 - KeyboardInterrupt: raised again by Step.wait
            step.interrupt(error)
        finally:
            step.thread_ended()
            self.part.actor.group.look_for_deadlocks()

    def pause(self, resume: Callable[[], None]) -> bool:
        """Whether the time budget is used up; then `resume` is called in a later turn of the device."""
        actor = self.part.actor
        if not actor.pacer.is_due:
            return False
        actor.post(Resume(self, resume))
        return True

    def function(self, function: NamedFunction, scope: Scope) -> Function:
        """A function, to be called by the kernel."""
        return function.provider.function_for(self, function.function, scope)

    @property
    def is_of_nodes(self) -> bool:
        """Whether it is a loop or a call of a function: the run ends when the nodes in it have run."""
        return not record_of(self.op).waits

    def cancel(self) -> None:
        """Called when the step fails: calls the callbacks. An exception of one becomes a note of the step's error."""
        self.is_ended = self._is_cancelled = True
        callbacks, self._on_cancel = self._on_cancel, []
        for callback in callbacks:
            try:
                callback()
            except Exception as error:  # noqa: BLE001 - the step has failed already; a note keeps this
                self.step.add_note(f"when {self.op!r} was cancelled, its kernel raised {error!r}")

    def _end(self) -> bool:
        if self.is_ended:
            return False
        self.is_ended = True
        self._on_cancel.clear()
        self.part.step.calls.discard(self)
        return True


def add_call_chain(call: PendingCall | None, function: str, error: PartitaError) -> PartitaError:
    """Adds to the error of a node in a function the chain of calls that led there."""
    while call is not None:
        error.inside(function).located(node=call.place.node)
        function, call = call.part.function, call.part.call
    return error
