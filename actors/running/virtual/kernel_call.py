"""A call in a virtual step: its kernel decides which functions run, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ....devices.timing.playing.activation import Activation, LoopTurn, Place, Playing
from ....devices.timing.playing.call_run import CallRun

if TYPE_CHECKING:
    from ....graph.ops.record import Calls
    from ..callee import CallTurn
    from .graph_run import GraphRun
    from .kernel_oracle import KernelOracle


class KernelCall(CallRun):
    """One run of a node that calls functions; `cause` is the last entry of these, or that which released the node."""

    def __init__(
        self, player: Playing, caller: Activation, node: int, kind: Calls | None, oracle: KernelOracle
    ) -> None:
        super().__init__(player, caller, node, kind)
        self.cause = -1
        self._starting: GraphRun
        self._oracle = oracle

    def begin(self, cause: int) -> None:
        """Starts the kernel."""
        self.cause = cause
        tokens = self.caller.tokens
        assert tokens is not None  # as the call is in a virtual step
        inputs: list[Any] = tokens.inputs.pop(self.node, [])
        self._oracle.run_of(self.caller).launch(self.caller, self.node, inputs)

    def start(self, run: GraphRun, turn: CallTurn | None) -> None:
        """Begins the body of a function; `turn` is as in `Callee.start`."""
        _, _, _, number, loops = self.caller.place
        is_condition = False
        if turn is not None:
            number, is_condition = turn.number, turn.is_condition
            loops = (*loops, LoopTurn(self.name, number, self))
        place = Place(run.body.bodies, self.path, 0, number, loops)
        self._starting = run
        self.play(run.body.bodies.body(0), place, self.cause, gives_results=not is_condition)
        self._oracle.clock.post(self._oracle.player)

    def began(self, activation: Activation) -> None:
        """The body of a function begins."""
        super().began(activation)
        self._oracle.runs[activation] = self._starting

    def ended(self, activation: Activation, cause: int) -> None:
        """The body of a function has ended."""
        self.cause = cause
        run = self._oracle.runs.pop(activation)
        assert run.ended is not None  # as `start` began it
        run.ended(run)
