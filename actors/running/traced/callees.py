"""Functions in traced steps: every call is a part, so that it has a scope for its records.

A short function, elsewhere one instruction of its caller, is called like any other here, and counts how often the node
has called it: so a trace tells how often a While ran its body, and which branch an If took.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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

    def _scope_of(self, call: PendingCall, turn: CallTurn | None) -> TraceScope:
        caller = call.part
        assert isinstance(caller, TracedPart | TracedInterpretedPart)  # a traced function is called by a traced graph
        number = None if turn is None else turn.number
        return caller.scope_of(call.number).called(call.place.node, self.name, number)
