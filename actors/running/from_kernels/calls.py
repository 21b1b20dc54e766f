"""The functions that deferred kernels call: what `devices.kernels.registry.Call.function` gives.

A short function is run at once. Any other runs in parts, in a step of its own within the step of the kernel, so that an
error of the function goes to the kernel, which decides what becomes of it:

    step of the kernel --fails--> step of the function is cancelled
    step of the function --fails--> `failed(error)`; the step of the kernel goes on

Functions called by kernels leave no records in traces, and take no time on a virtual clock: the node that called them
stands for them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ....devices.kernels.functions import Values
from ....devices.pipeline.bodies import body_of
from ....errors import CancelledError, InvalidArgumentError, PartitaError, of_kernel
from ....rendezvous import LocalRendezvous
from ..callee import CalledFunction, Callee, CallTurn
from ..lazy_callee import DevicesOfResources
from ..pending import NodeNames, PendingCall
from ..step import Step

if TYPE_CHECKING:
    from ....devices.kernels.functions import Failed, TakeResults
    from ....graph import NameAttrList
    from ..callee import Callees
    from ..device_actor import DeviceActor


class KernelCallees:
    """A function compiled for calls by kernels on one device: once for each combination of devices of its resources."""

    __slots__ = ("_callees", "_device", "_function", "_functions", "_num_arguments", "_resource_devices")

    def __init__(self, functions: Callees, function: NameAttrList, device: str) -> None:
        """Raises the errors of instantiation."""
        types = body_of(functions.library, function, gradient=False).argument_types
        self._functions = functions
        self._function = function
        self._device = device
        self._num_arguments = len(types)
        self._resource_devices = DevicesOfResources(functions, device, types)
        self._callees: dict[tuple[str, ...], Callee] = {}

    def find(self, arguments: Values) -> Callee:
        """The function for a call with these arguments; InvalidArgumentError if it takes another number of them."""
        if len(arguments) != self._num_arguments:
            raise InvalidArgumentError(
                f"Expects {self._num_arguments} arguments, but {len(arguments)} is provided: "
                f"function {self._function.name!r}"
            )
        devices = self._resource_devices(arguments)
        callee = self._callees.get(devices)
        if callee is None:
            called = CalledFunction(
                self._function, self._device, devices, site=self._functions.own_site(self._function)
            )
            callee = self._callees[devices] = self._functions.callee(called)
        return callee


class KernelFunction:
    """One function, called any number of times on behalf of one call of a kernel."""

    __slots__ = ("_call", "_callees", "_find", "_num_started", "_running")

    def __init__(self, find: Callable[[], KernelCallees], call: PendingCall) -> None:
        """`find` may raise the errors of instantiation, which are those of each call."""
        self._find = find
        self._callees: KernelCallees | None = None
        self._call = call
        self._num_started = 0
        self._running: set[_FunctionStep] = set()

    def __call__(self, arguments: Values, done: TakeResults, failed: Failed) -> None:
        """Calls the function: as `devices.kernels.functions.Function`."""
        try:
            if self._callees is None:
                self._callees = self._find()
            callee = self._callees.find(arguments)
            if not callee.is_short:
                self._start(callee, arguments, done, failed)
                return
            results = callee.run(*arguments)
        except Exception as error:  # noqa: BLE001 - a kernel may raise anything
            place = self._call.place
            failed(of_kernel(place.op, error).located(node=place.node, op=place.op, device=place.device))
            return
        done(results)

    def _start(self, callee: Callee, arguments: Values, done: TakeResults, failed: Failed) -> None:
        """Starts a function that is not short."""
        if not self._num_started:
            self._call.on_cancel(self._cancel)
        self._num_started += 1
        step = _FunctionStep(self._call.step, failed, self._running)
        site = _Site(step, self._call)
        call = PendingCall(site, self._call.number)
        step.calls.add(call)

        def returned(results: Values) -> None:
            call.is_ended = True
            step.part_ended(site)
            done(results)

        callee.start(call, arguments, returned, CallTurn(self._num_started))

    def _cancel(self) -> None:
        """The step of the kernel has failed: so do those of the functions that run."""
        for step in list(self._running):
            step.cancel()


class _FunctionStep(Step):
    """The step of the parts of one call of a function; while it runs it is one of `running`."""

    __slots__ = ("_around", "_failed", "_running_steps")

    def __init__(self, around: Step, failed: Failed, running: set[_FunctionStep]) -> None:
        super().__init__(around.number, LocalRendezvous())
        self._around = around
        self._failed: Failed | None = failed
        self._running_steps = running
        running.add(self)
        self.begin(1)

    def part_ended(self, part: object) -> None:
        """The call has returned."""
        super().part_ended(part)
        self._running_steps.discard(self)

    def fail(self, error: PartitaError) -> None:
        """As `Step.fail`; tells the kernel."""
        if self.error is not None or not self._unfinished:
            return
        super().fail(error)
        self._running_steps.discard(self)
        failed, self._failed = self._failed, None
        if failed is not None and self.error is not None:
            failed(self.error)

    def cancel(self) -> None:
        """The step of the kernel has failed, so nobody waits for this one."""
        self._failed = None
        self.fail(CancelledError("the step of the caller has ended"))

    def interrupt(self, error: BaseException) -> None:
        """As `Step.interrupt`, of the step around."""
        self._around.interrupt(error)

    def thread_began(self) -> None:
        """A worker thread works for this step and for the one around."""
        super().thread_began()
        self._around.thread_began()

    def thread_ended(self) -> None:
        """A worker thread has stopped working for this step and for the one around."""
        super().thread_ended()
        self._around.thread_ended()


class _Site:
    """Where a function is called: stands for the part that the kernel is in, as `pending.Caller`.

    The chain of calls ends here: the kernel adds the rest if it fails with the error.
    """

    __slots__ = ("_call", "actor", "call", "depth", "frame", "function", "step")

    def __init__(self, step: Step, call: PendingCall) -> None:
        part = call.part
        self.step = step
        self.actor: DeviceActor = part.actor
        self.depth = part.depth
        self.frame = part.frame
        self.function = ""
        self.call: PendingCall | None = None
        self._call = call

    def place_of(self, _number: int) -> NodeNames:
        """Name, op and device of the node that calls."""
        return self._call.place

    def iterations_of(self, _number: int) -> tuple[int, ...]:
        """The numbers of the iterations of the loops around the node that calls."""
        return self._call.iterations

    def arrive(self, _number: int, _outputs: Values) -> None:
        """Never called: the results go to the kernel."""

    def fail(self, error: PartitaError) -> None:
        """Fails the step of the function."""
        self.step.fail(error)
