"""One run of a node on simulated hardware: its inputs, its outputs and what it costs.

A deferred node has a call besides, whose timers are simulated.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ....devices.timing.bodies.body import is_small
from ....devices.timing.hardware.iterations import RowTurn
from ....errors import of_kernel
from ..pending import PendingCall
from .body import FREE, dims_of

if TYPE_CHECKING:
    from ..tokens.frames import Target, Token
    from .graph_run import GraphRun

NO_TICKET = 0
"""the ticket of values that wait for no kernel"""
_NS_PER_S = 10**9


class NodeRun:
    """Takes the messages of the hardware for one row: a `clock.Running`.

    `number` is the joint number of the node. `late` has the inputs of other nodes that wait for the end of a kernel
    which has been launched.
    """

    __slots__ = (
        "cost",
        "graph_run",
        "inputs",
        "is_computed",
        "is_launched",
        "late",
        "number",
        "outputs",
        "row",
        "token",
    )

    def __init__(self, graph_run: GraphRun, token: Token, row: int, inputs: list[Any]) -> None:
        self.graph_run = graph_run
        self.token = token
        self.row = row
        self.number = graph_run.body.joint[token.partition][token.node]
        self.inputs = inputs
        self.outputs: list[Any] = []
        self.cost = FREE
        self.is_computed = self.is_launched = False
        self.late: list[tuple[Token, Target, Any, bool]] = []

    def begin(self) -> int:
        """The node takes its device: computes it, unless that was done, and returns its time there in ns."""
        self.graph_run.begin(self)
        return self.cost.time_ns

    def turn(self) -> RowTurn:
        """What decides when the node runs, if it is one of overlapping iterations."""
        ranks = self.graph_run.body.graph.import_ranks
        return RowTurn(is_small(map(dims_of, self.inputs)), (self.row - self.number, ranks[self.number]))

    def launched(self, ticket: int, entry: int) -> bool:
        """Passes the outputs on to the stream; returns whether nothing else waits for the end of the kernel."""
        return self.graph_run.launched(self, ticket, entry)

    def ended(self, entry: int) -> None:
        """Passes the outputs on."""
        self.graph_run.ended(self, entry)


class VirtualCall(PendingCall):
    """One run of a deferred node, `node_run`, in `graph_run`."""

    __slots__ = ("cause", "graph_run", "is_of_function", "node_run")

    def __init__(self, graph_run: GraphRun, number: int, node_run: NodeRun, cause: int) -> None:
        """`cause` is the entry that released the node; of a node that calls functions, later the last of these."""
        super().__init__(graph_run, number)
        self.graph_run = graph_run
        self.node_run = node_run
        self.cause = cause
        self.is_of_function = graph_run.body.calls_functions(node_run.number)

    def done(self, *outputs: Any) -> None:  # Any: tensors of any type
        """Ends the run with the outputs of the node."""
        if not self.is_of_function:
            super().done(*outputs)
        elif self._end():
            self.graph_run.call_ended(self.number, outputs, self.cause)

    def after(self, seconds: float, callback: Callable[[], None]) -> None:
        """Calls `callback` after so many simulated seconds, unless the step ends before."""
        self.graph_run.virtual.clock.after(round(seconds * _NS_PER_S), partial(self._timer_ended, callback))

    def _timer_ended(self, callback: Callable[[], None]) -> None:
        if self.is_ended:
            return
        try:
            callback()
        except Exception as error:  # noqa: BLE001 - a kernel may raise anything
            self.fail(of_kernel(self.op, error))
