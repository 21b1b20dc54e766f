"""One run of a graph on simulated hardware, of a request or of a function that a node calls: its arguments and results.

Its nodes are played by the player of the step, which asks the oracle of the step for them (`kernel_oracle`). Deferred
nodes have a call of their own, whose timers are simulated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ....errors import InvalidArgumentError, PartitaError, of_kernel
from ..pending import NodeNames, PendingCall, add_call_chain
from ..tokens.results import LiveResults

if TYPE_CHECKING:
    from ....devices.kernels.functions import Values
    from ....devices.timing.playing.activation import Activation
    from ..device_actor import DeviceActor
    from ..step import Step
    from .body import VirtualBody
    from .kernel_oracle import KernelOracle

T = TypeVar("T")
_NS_PER_S = 10**9


@dataclass(eq=False)
class GraphRun:
    """A run of a body in the step of an oracle.

    `call`, `function` and `depth` are as in `pending.Caller`; they have their defaults for a request. There are no keys
    of messages, so `frame` is always empty.
    """

    oracle: KernelOracle
    body: VirtualBody
    actor: DeviceActor
    feeds: Values
    depth: int = 0
    call: PendingCall | None = None
    function: str = ""
    ended: Callable[[GraphRun], None] | None = None
    """called when all nodes that can run have, for a called function"""
    results: LiveResults = field(default_factory=LiveResults)
    iterations: tuple[int, ...] = ()
    """of the loops around the call"""
    _calls: dict[int, tuple[Activation, int]] = field(default_factory=dict)  # deferred nodes that run, by number
    _num_calls: int = 0

    def __post_init__(self) -> None:
        self.step: Step = self.oracle.step
        self.frame = ""

    def argument(self, index: int) -> Any:
        """An argument. InvalidArgumentError if there is none of that number."""
        if not 0 <= index < len(self.feeds):
            raise InvalidArgumentError(f"GetArg {index} is not within [0, {len(self.feeds)})")
        return self.feeds[index]

    def result(self, index: int) -> Any:
        """Result number `index`; DEAD if no node has computed it."""
        return self.results.get(index)

    # Deferred nodes: the protocol `pending.Caller`

    def launch(self, activation: Activation, node: int, inputs: list[Any]) -> None:
        """Starts the kernel of a deferred node."""
        number, self._num_calls = self._num_calls, self._num_calls + 1
        self._calls[number] = activation, node
        part, own = self.body.kernels[self.body.number(activation, node)]
        VirtualCall(self, number, activation, node).launch(partial(part.start, own), inputs)

    def place_of(self, number: int) -> NodeNames:
        """Name, op and device of a deferred node that runs."""
        activation, node = self._calls[number]
        return self.place(activation, node)

    def iterations_of(self, number: int) -> tuple[int, ...]:
        """The numbers of the iterations of the loops around a deferred node that runs, the outermost first."""
        activation, _ = self._calls[number]
        return (*self.iterations, *(turn.number for turn in activation.place.loops))

    def place(self, activation: Activation, node: int) -> NodeNames:
        """Name, op and device of a node."""
        part, own = self.body.kernels[self.body.number(activation, node)]
        return NodeNames(part.names[own], part.properties[own].op, part.devices[own])

    def arrive(self, number: int, outputs: Values) -> None:
        """Takes the outputs of a deferred node at the present time."""
        self.oracle.arrived(*self._calls.pop(number), outputs)

    def fail(self, error: PartitaError) -> None:
        """Fails the step with the error of a node, to which the calls that led here are added."""
        self.step.fail(add_call_chain(self.call, self.function, error))


class VirtualCall(PendingCall):
    """One run of a deferred node, a node of `activation`."""

    __slots__ = ("activation", "node", "run")

    def __init__(self, run: GraphRun, number: int, activation: Activation, node: int) -> None:
        super().__init__(run, number)
        self.run = run
        self.activation = activation
        self.node = node

    def after(self, seconds: float, callback: Callable[[], None]) -> None:
        """Calls `callback` after so many simulated seconds, unless the step ends before."""
        self.run.oracle.clock.after(round(seconds * _NS_PER_S), partial(self._timer_ended, callback))

    def when_stuck(self, callback: Callable[[], None]) -> None:
        """Calls `callback` if nothing of the step can go on before the run ends."""
        self.step.when_stuck(self, callback)
        clock = self.run.oracle.clock
        clock.watch(self.step)
        self.on_cancel(partial(clock.unwatch, self.step))

    def compute(self, work: Callable[[], T], then: Callable[[T], None], *, in_thread: bool) -> None:
        """Calls `then` with what `work` returns, at once: on a virtual clock kernels run in the task of the clock."""
        then(work())

    def _timer_ended(self, callback: Callable[[], None]) -> None:
        if self.is_ended:
            return
        try:
            callback()
        except Exception as error:  # noqa: BLE001 - a kernel may raise anything
            self.fail(of_kernel(self.op, error))
