"""Functions in traced steps: every call is a part, so that it has a scope for its records.

A short function, elsewhere one instruction of its caller, is called like any other here, and counts how often the node
has called it: so a trace tells how often a While ran its body, and which branch an If took.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....devices.kernels.functions import TakeResults, Values
from ..callee import Callee
from .interpreted import TracedInterpretedPart
from .parts import TracedPart

if TYPE_CHECKING:
    from ...plans.tracing import TraceScope
    from ..callee import CallTurn
    from ..pending import PendingCall


class TracedCallee(Callee):
    """A function compiled to plans with clocks."""

    __slots__ = ()
    _part = TracedPart
    _interpreted_part = TracedInterpretedPart

    @property
    def is_alone(self) -> bool:
        """Never: see above."""
        return False

    def start(
        self,
        call: PendingCall,
        arguments: Values,
        done: TakeResults,
        turn: CallTurn | None = None,
        scope: TraceScope | None = None,
    ) -> None:
        """As `Callee.start`, in a scope of the call."""
        caller = call.part
        assert isinstance(caller, TracedPart | TracedInterpretedPart)  # a traced function is called by a traced graph
        around = caller.scope_of(call.number)
        number = None if turn is None else turn.number
        scope = around.called(call.place.node, self.name, number)
        super().start(call, arguments, done, turn, scope)
