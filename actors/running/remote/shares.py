"""The parts of a call that comes from another process: how they start, how they end, and who called.

A node of such a part that fails says which nodes called, though these are elsewhere: `CallElsewhere` stands for them.

    callers of f in W2      (call_f, in g), (call_g, in the graph)
    error of node x there   x in f, called by call_g, call_f
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ....errors import InternalError, PartitaError
from ...plans.instructions import DEAD
from ...plans.tracing import TraceScope
from ..callee import Callee, StartedCall, store_results
from ..pending import NodeNames, PendingCall, add_call_chain
from .messages import CallBegin, CallEnd

if TYPE_CHECKING:
    from collections.abc import Callable

    from ....devices.kernels.functions import Values
    from ..callee import CalledFunction
    from ..device_actor import DeviceActor
    from ..interpreted_part import InterpretedPart
    from ..part import Part
    from ..step import Step
    from .step import RemoteStep


def begin_share(
    step: RemoteStep,
    process: str,
    begin: CallBegin,
    compiled: Callable[[CalledFunction], Callee],
    actor: DeviceActor,
) -> None:
    """Starts the parts that this process has of a call by `process`; `compiled` gives the function.

    An error of `compiled` fails the step as one of the calling node. `actor` is any of this process.
    """
    call = PendingCall(CallElsewhere(step, actor, begin), 0)
    try:
        callee = compiled(begin.called)
    except PartitaError as error:
        call.fail(error)
        return
    num_running = len(callee.work) + (callee.interpreted is not None)
    if not num_running:
        call.fail(InternalError(f"function {callee.name!r} has no parts in the process that {process!r} calls"))
        return
    scope = None if begin.scope is None else TraceScope(step.records, *begin.scope)
    arguments = [begin.arguments.get(number) for number in range(len(callee.argument_types))]
    ended = _ShareCollector(step, process, begin.frame, callee.num_results, num_running)
    callee.begin(StartedCall(call, begin.frame, begin.depth, begin.iterations, scope), arguments, ended)


class _ShareCollector:
    """Collects the results of the parts of a call in this process, and sends them when the last part has ended."""

    __slots__ = ("_frame", "_num_running", "_process", "_results", "_step")

    def __init__(self, step: RemoteStep, process: str, frame: str, num_results: int, num_running: int) -> None:
        self._step = step
        self._process = process
        self._frame = frame
        self._results: list[Any] = [DEAD] * num_results
        self._num_running = num_running

    def __call__(self, part: Part | InterpretedPart) -> None:
        store_results(part, self._results)
        self._num_running -= 1
        if not self._num_running:
            results = {index: value for index, value in enumerate(self._results) if value is not DEAD}
            self._step.tell(self._process, CallEnd(self._frame, results))


class CallElsewhere:
    """Where a call was made in another process: stands for the part that the calling node is in, a `NodeHost`.

    `number` counts the calling nodes, from the innermost outwards.
    """

    __slots__ = ("_begin", "_number", "actor", "depth", "frame", "function", "step")

    def __init__(self, step: Step, actor: DeviceActor, begin: CallBegin, number: int = 0) -> None:
        self.step = step
        self.actor = actor
        self.depth = begin.depth
        self.frame = begin.frame
        self.function = begin.callers[number].function
        self._begin = begin
        self._number = number

    @property
    def call(self) -> PendingCall | None:
        """The call of that function; None if the node is in the graph itself."""
        further = self._number + 1
        if further == len(self._begin.callers):
            return None
        return PendingCall(CallElsewhere(self.step, self.actor, self._begin, further), 0)

    def place_of(self, _number: int) -> NodeNames:
        """Name, op and device of the calling node; op and device are known of the innermost."""
        op, device = ("", "") if self._number else (self._begin.op, self._begin.device)
        return NodeNames(self._begin.callers[self._number].node, op, device)

    def iterations_of(self, _number: int) -> tuple[int, ...]:
        """The numbers of the iterations of the loops around."""
        return self._begin.iterations

    def arrive(self, _number: int, _outputs: Values) -> None:
        """Never called: the results go to the process of the caller."""

    def fail(self, error: PartitaError) -> None:
        """Fails the step with the error of the calling node, to which the calls that led there are added."""
        self.step.fail(add_call_chain(self.call, self.function, error))
