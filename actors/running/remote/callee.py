"""A function with parts in several processes, as the process has it in which a node calls it.

    W1 calls f from CPU:0                      W2
      its own parts begin
      CallBegin, arguments of W2's parts ---->   its parts begin (`shares`)
      <--------- tensors between the parts, at the rendezvous, under keys of the call ------>
      <------- CallEnd, results of W2's parts    its parts have ended
      all have ended: the results go to the node that called

Functions whose parts are all in the calling process are plain `Callee`s, which know nothing of others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ....devices.kernels.functions import TakeResults, Values
from ....errors import UnimplementedError
from ..callee import CalledFunction, Callee, CallTurn, ResultCollector, StartedCall
from ..traced.callees import TracedCallee
from .messages import CallBegin, Caller
from .step import RemoteStep

if TYPE_CHECKING:
    from ..pending import PendingCall


class Share(NamedTuple):
    """What another process has of a function: parts on these devices, which need these arguments, by number."""

    process: str
    devices: tuple[str, ...]
    arguments: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteCallee(Callee):
    """A function with parts `elsewhere`. It is `called` among the functions of that number."""

    called: CalledFunction
    functions: int
    elsewhere: tuple[Share, ...]

    @property
    def is_alone(self) -> bool:
        """Never: its results come later."""
        return False

    def start(self, call: PendingCall, arguments: Values, done: TakeResults, turn: CallTurn | None = None) -> None:
        """As `Callee.start`; UnimplementedError in the step of a function that a kernel calls, which is of one process.

        Such a function has a step of its own, whose state and errors are the kernel's.
        """
        step = call.part.step
        if not isinstance(step, RemoteStep):
            raise self._refusal()
        run = self.run_of(call, turn)
        num_own = len(self.work) + (self.interpreted is not None)
        ended = ResultCollector(self, call, done, num_own + len(self.elsewhere))
        for share in self.elsewhere:
            step.begin_elsewhere(share.process, self._begin_of(share, run, arguments), ended)
        self.begin(run, arguments, ended)

    def _begin_of(self, share: Share, run: StartedCall, arguments: Values) -> CallBegin:
        _, op, device = run.call.place
        return CallBegin(
            functions=self.functions,
            called=self.called,
            frame=run.frame,
            depth=run.depth,
            iterations=run.iterations,
            callers=callers_of(run.call),
            op=op,
            device=device,
            scope=None if run.scope is None else (run.scope.prefix, run.scope.iteration),
            arguments={number: arguments[number] for number in share.arguments},
        )

    def _refusal(self) -> UnimplementedError:
        devices = ", ".join(device for share in self.elsewhere for device in share.devices)
        return UnimplementedError(
            f"function {self.name!r}, which a kernel calls on {self.called.device}, has nodes on {devices} in another "
            "worker process; put these devices on one worker by spread="
        )


class RemoteTracedCallee(TracedCallee, RemoteCallee):
    """The same for traced steps."""

    __slots__ = ()


def callers_of(call: PendingCall | None) -> tuple[Caller, ...]:
    """The nodes that led to a call, the calling one first."""
    callers = []
    while call is not None:
        callers.append(Caller(call.place.node, call.part.function))
        call = call.part.call
    return tuple(callers)
