"""Parts of traced steps: they record the arguments and the deferred nodes, which no instruction computes.

A deferred node runs from its launch until its outputs arrive; one that calls functions is as long as all their nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from ...plans.instructions import DEAD, TRACE_SLOT, Slots
from ...plans.plan import DistributedLoop, LocalLoop
from ...plans.roles import Role, role_of
from ..loops.distributed import DistributedLoopRun, IterationRunner
from ..part import Part

if TYPE_CHECKING:
    from ...plans.tracing import TraceScope


class TracedLoopRun(DistributedLoopRun):
    """One execution of a loop on one device; its iterations have scopes of their own."""

    __slots__ = ()

    def begin(self, part: IterationRunner, variables: Sequence[Any]) -> None:
        """As `DistributedLoopRun.begin`, in the scope of the next iteration."""
        self._template[TRACE_SLOT] = self._template[TRACE_SLOT].next_iteration(self._loop.frame)
        super().begin(part, variables)


class TracedPart(Part):
    """One run of a traced plan; slot TRACE_SLOT of its slots has a scope."""

    __slots__ = ()
    _loop_run = TracedLoopRun

    def _begin(self, slots: Slots, frame: str = "", *, ahead: bool = False) -> None:
        """As `Part._begin`; records the arguments, except those of iterations of a loop, which have a node each."""
        plan = self.plan
        if plan.arguments and not plan.repeats:
            slot_of, scope = {argument.index: argument.slot for argument in plan.arguments}, slots[TRACE_SLOT]
            for name, properties in zip(plan.names, plan.properties, strict=True):
                if role_of(properties.op) is Role.ARG:
                    slot = slot_of[properties.attrs["index"]]
                    scope.record(plan.device, name, properties, perf_counter_ns(), [slots[slot]] if slot else [])
        super()._begin(slots, frame, ahead=ahead)

    def launch(self, number: int, inputs: Sequence[Any]) -> None:  # Any: tensors of any type
        """As `Part.launch`; notes when."""
        self.scope_of(number).began_ns[self.place_of(number).node] = perf_counter_ns()
        super().launch(number, inputs)

    def arrive(self, number: int, outputs: Sequence[Any], flag: object = None) -> None:
        """As `Part.arrive`; records the node unless it is dead, or a loop, whose nodes have records of their own."""
        deferred, plan = self.plan.deferred[number], self.plan
        if flag is not DEAD and not isinstance(deferred.work, LocalLoop | DistributedLoop):
            name, scope = plan.names[deferred.node], self.scope_of(number)
            arrival = plan.properties[deferred.node + 1]
            scope.record(plan.device, name, arrival, scope.began_ns.pop(name), outputs)
        super().arrive(number, outputs, flag)

    def scope_of(self, _number: int) -> TraceScope:
        """The scope of a deferred node: that of the part, in the iteration that it runs."""
        scope: TraceScope = self.slots[TRACE_SLOT]
        return scope
