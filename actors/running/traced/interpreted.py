"""Interpreted graphs in traced steps: every node that is not dead leaves a record, in the scope of its iteration."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from ...plans.roles import Role
from ...plans.tracing import TraceScope
from ..interpreted_part import InterpretedPart

if TYPE_CHECKING:
    from ..interpretation import Interpretation
    from ..tokens.frames import RunningFrame, Token

_UNRECORDED = (Role.SEND, Role.RECV)


class TracedInterpretedPart(InterpretedPart):
    """One run of a graph that is interpreted and traced."""

    _scopes: dict[tuple[str, int], TraceScope]
    _began_ns: int

    def start(self, frame: str = "") -> None:
        """As `InterpretedPart.start`."""
        self._scopes = {}
        super().start(frame)

    def scope_of(self, number: int) -> TraceScope:
        """The scope of a deferred node that runs."""
        return self._scope_in(self._calls[number].frame, self._calls[number].iteration)

    def arrive(self, number: int, outputs: Sequence[Any]) -> None:  # Any: tensors of any type
        """As `InterpretedPart.arrive`; the node began when it was launched."""
        self._began_ns = self.scope_of(number).began_ns.pop(self.place_of(number).node)
        super().arrive(number, outputs)

    def _scope_in(self, frame: RunningFrame, iteration: int) -> TraceScope:
        if frame.parent is None:
            assert self._scope is not None  # traced graphs have one
            return self._scope
        scope = self._scopes.get((frame.name, iteration))
        if scope is None:
            around = self._scope_in(frame.parent, frame.parent_iteration)
            scope = self._scopes[frame.name, iteration] = around.in_iteration(frame.key, iteration)
        return scope

    def _process(self, token: Token) -> None:
        self._began_ns = perf_counter_ns()
        super()._process(token)

    def _launch(self, token: Token, part: Interpretation, inputs: list[Any]) -> None:
        self._scope_in(token.frame, token.iteration).began_ns[part.names[token.node]] = perf_counter_ns()
        super()._launch(token, part, inputs)

    def _propagate(self, token: Token, outputs: list[Any]) -> None:
        part, node = self.parts[token.partition], token.node
        if not token.is_dead and part.roles[node] not in _UNRECORDED:
            scope = self._scope_in(token.frame, token.iteration)
            scope.record(part.devices[node], part.names[node], part.properties[node], self._began_ns, outputs)
        super()._propagate(token, outputs)
