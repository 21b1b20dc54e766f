"""The functions that nodes call in a session on a virtual clock: their bodies run on the same simulated hardware.

Every call is a deferred node, however short its function: it begins when its inputs are there, and ends when the body
has run. A call takes no time of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ....devices.kernels.functions import TakeResults, Values
from ....errors import PartitaError, of_kernel
from ...plans.binding import check_complete
from ..callee import Callee, iterations_in
from ..functions import Compilation, Functions
from .body import VirtualBody
from .graph_run import GraphRun, VirtualCall
from .kernel_call import KernelCall

if TYPE_CHECKING:
    from ..callee import CalledFunction, CallTurn
    from ..device_actor import DeviceActor
    from ..loops.whole_body import WholeBody
    from ..pending import PendingCall


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualCallee(Callee):
    """A function whose body runs on simulated hardware, called from the device of `actor`."""

    body: VirtualBody
    actor: DeviceActor

    @property
    def is_alone(self) -> bool:
        """False: the nodes of every body take simulated time."""
        return False

    def start(self, call: PendingCall, arguments: Values, done: TakeResults, turn: CallTurn | None = None) -> None:
        """Calls the function for a deferred node; as in `Callee`."""
        assert isinstance(call, VirtualCall)  # nodes of a virtual session are run by its oracle alone
        around = call.activation.calls[call.node]
        assert isinstance(around, KernelCall)  # as the node calls a function
        ended = partial(self._ended, call, done)
        oracle = call.run.oracle
        run = GraphRun(oracle, self.body, self.actor, arguments, self.depth_of(call), call, self.name, ended)
        run.iterations = iterations_in(call, turn)
        around.start(run, turn)

    def _ended(self, call: VirtualCall, done: TakeResults, run: GraphRun) -> None:
        """Gives the results to the caller, which passes them on later: calls in calls do not recurse."""
        if call.is_ended:
            return
        try:
            done(self.checked_results([run.result(index) for index in range(self.num_results)]))
        except Exception as error:  # noqa: BLE001 - a kernel may raise anything
            call.fail(of_kernel(call.op, error))


class VirtualFunctions(Functions):
    """Functions whose bodies run on simulated hardware, except those that kernels call."""

    def for_kernels(self) -> Functions:
        """The same functions, as deferred kernels call them: they take no simulated time of their own."""
        return self._untraced

    def whole_body(self, called: CalledFunction) -> WholeBody | None:
        """None: a loop that took its functions in would be one node, and their nodes take simulated time."""
        return None

    def _finished(self, compilation: Compilation) -> Callee:
        """Prepares a body whose callees are known."""
        body, called = compilation.body, compilation.called
        binders = self._binders_at(called)
        try:
            in_order = {name: compilation.parts[name] for name in binders if name in compilation.parts}
            virtual = VirtualBody(in_order, binders, self._cluster)
            check_complete(binders.values())
        except PartitaError as error:
            raise error.inside(body.name) from error.__cause__
        return VirtualCallee(
            name=body.name,
            work=(),
            argument_types=body.argument_types,
            result_types=body.result_types,
            size=0,
            may_call_itself=self.may_call_itself(called.function.name, gradient=called.gradient),
            body=virtual,
            actor=self._actors[called.device],
        )
