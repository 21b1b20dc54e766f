"""Runs of deferred nodes: a call that is under way until its outputs are there.

A call ends once, by `done`, by `fail` or because its step ends; whoever kept it waiting is told in the last case, and
what he says afterwards is not heard.

    LAUNCHED --done(outputs)--> the outputs are in their slots, what waited for them goes on
        |------fail(error)----> the step has failed
        `------the step fails--> CANCELLED: the callbacks of `on_cancel` are called, those given later at once
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import trio

from ...errors import of_kernel

if TYPE_CHECKING:
    from ...devices.kernels.registry import Start
    from ...errors import PartitaError
    from .device_actor import DeviceActor
    from .step import Step


class Place(NamedTuple):
    """Where something happens: names of a node, its op and its device."""

    node: str
    op: str
    device: str


class Caller(Protocol):
    """The part of a step that has deferred nodes, by number, and gets their outputs.

    It is `depth` calls deep, in the function of that name, which `call` has called; "" and None are the graph itself.
    `frame` is what the keys of its messages end with.
    """

    step: Step
    actor: DeviceActor
    depth: int
    call: PendingCall | None
    function: str
    frame: str

    def place_of(self, number: int) -> Place:
        """Which node a deferred one is."""

    def arrive(self, number: int, outputs: Sequence[Any]) -> None:
        """The outputs of a deferred node are there."""

    def fail(self, error: PartitaError) -> None:
        """A node of the part has failed, and the step with it."""


class PendingCall:
    """One run of a deferred node in a step; see the module and `devices.kernels.registry.Call`."""

    __slots__ = ("_is_cancelled", "_on_cancel", "is_ended", "number", "part")

    def __init__(self, part: Caller, number: int) -> None:
        self.part = part
        self.number = number
        self.is_ended = False
        self._is_cancelled = False
        self._on_cancel: list[Callable[[], None]] = []

    def launch(self, start: Start, inputs: Sequence[Any]) -> None:
        """Begins, unless the step has failed: nobody would end the call then."""
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
        """The step it belongs to."""
        return self.part.step

    @property
    def op(self) -> str:
        """The op of the node."""
        return self.place.op

    @property
    def place(self) -> Place:
        """The node that made it."""
        return self.part.place_of(self.number)

    def done(self, *outputs: Any) -> None:  # Any: tensors of any type
        """The outputs are there."""
        if self._end():
            self.part.arrive(self.number, outputs)

    def fail(self, error: PartitaError) -> None:
        """The node has failed, and the step with it."""
        if self._end():
            node, op, device = self.place
            self.part.fail(error.located(node=node, op=op, device=device))

    def after(self, seconds: float, callback: Callable[[], None]) -> None:
        """Has `callback` called when so much time has passed, unless the step ends before."""
        # Shielded like the actors, beside which it runs: what ends it is its step, which a session never outlives.
        scope = trio.CancelScope(deadline=trio.current_time() + seconds, shield=True)
        self.on_cancel(scope.cancel)
        self.part.actor.start_soon(self._wait, scope, callback, name=f"timer of step {self.step.number}")

    @trio.lowlevel.enable_ki_protection
    async def _wait(self, scope: trio.CancelScope, callback: Callable[[], None]) -> None:
        """The task of a timer."""
        with scope:
            await trio.sleep_forever()
        if self.is_ended:
            return
        try:
            callback()
        except Exception as error:  # noqa: BLE001 - a kernel may raise anything
            self.fail(of_kernel(self.op, error))

    def on_cancel(self, callback: Callable[[], None]) -> None:
        """Has `callback` called if the step ends before the call, at once if it has."""
        if self._is_cancelled:
            callback()
        else:
            self._on_cancel.append(callback)

    def cancel(self) -> None:
        """The step has ended: tells those who would have ended the call. What one of them raises stops none of them."""
        self.is_ended = self._is_cancelled = True
        callbacks, self._on_cancel = self._on_cancel, []
        for callback in callbacks:
            try:
                callback()
            except Exception as error:  # noqa: BLE001 - the step has failed already, and is told of this too
                self.step.add_note(f"when {self.op!r} was cancelled, its kernel raised {error!r}")

    def _end(self) -> bool:
        if self.is_ended:
            return False
        self.is_ended = True
        self._on_cancel.clear()
        self.part.step.calls.discard(self)
        return True


def called_from(call: PendingCall | None, function: str, error: PartitaError) -> PartitaError:
    """The error of a node in a function, with the calls that led there."""
    while call is not None:
        error.inside(function).located(node=call.place.node)
        function, call = call.part.function, call.part.call
    return error
