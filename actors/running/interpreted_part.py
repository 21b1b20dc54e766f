"""A part that the reference executor runs: a whole uncut graph, for loops that cannot be compiled.

One actor interprets all nodes, but each computes with the kernel and the state of its own device. While deferred nodes
run, others go on; other tasks run when the time budget is used up; a step that has failed goes no further.

    RUNNING --no node is ready, deferred nodes run--> WAITING --the outputs of one arrive--> RUNNING
       `----no node is ready, no deferred node runs--> ended
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ...devices.kernels.functions import Values
from ...errors import PartitaError
from .messages import Continue, TurnedWork
from .pending import NodeNames, PendingCall, add_call_chain
from .reference import Reference

if TYPE_CHECKING:
    from ..plans.tracing import TraceScope
    from .device_actor import DeviceActor
    from .interpretation import Interpretation
    from .step import Step
    from .tokens.frames import Token

_NODES_BETWEEN_LOOKS = 20  # at the clock: about 100 us
_SLOW_S = 5e-5  # a node; after such nodes the clock is looked at after each


class InterpretedPart(Reference):
    """One run of a graph in a step, in place of the `Part`s of a compiled graph."""

    def __init__(
        self,
        step: Step,
        graph: Interpretation,
        actor: DeviceActor,
        feeds: Values,
        ended: Callable[[InterpretedPart], None],
        depth: int = 0,
        call: PendingCall | None = None,
        function: str = "",
        scope: TraceScope | None = None,
        *,
        keeps_last: bool = False,
    ) -> None:
        """`depth`, `call` and `function` are as in `Part`; `scope` is that of a traced graph.

        With `keeps_last` a fetch in a loop has its last live value.
        """
        super().__init__([graph], feeds, keeps_last=keeps_last)
        self.step = step
        self.actor = actor
        self.call = call
        self.function = function
        self.depth = depth
        self.frame = ""
        self.iterations: tuple[int, ...] = ()
        self._scope = scope
        self._ended = ended
        self._is_running = False
        self._calls: dict[int, Token] = {}  # deferred nodes that run, by number
        self._num_calls = 0

    def start(self, frame: str = "") -> None:
        """Begins to interpret; `frame` is the suffix of the keys of the calls."""
        self.frame = frame
        self._continue()

    def result(self, index: int) -> Any:
        """Result number `index`; DEAD if no node has computed it."""
        return self.results.get(index)

    def place_of(self, number: int) -> NodeNames:
        """Name, op and device of a deferred node that runs."""
        node, graph = self._calls[number].node, self.parts[0]
        return NodeNames(graph.names[node], graph.properties[node].op, graph.devices[node])

    def iterations_of(self, number: int) -> tuple[int, ...]:
        """The numbers of the iterations of the loops around a deferred node that runs, the outermost first."""
        token = self._calls[number]
        return (*self.iterations, *token.frame.iterations_at(token.iteration))

    def arrive(self, number: int, outputs: Values) -> None:
        """Passes the outputs of a deferred node on, and continues if no turn is posted."""
        self._propagate(self._calls.pop(number), list(outputs))
        # A kernel that is done at once calls this from the turn in which it was launched, which goes on by itself.
        if not self._is_running:
            self._continue()

    # The protocol `messages.Owner`

    @property
    def is_ended(self) -> bool:
        """Whether the step has failed."""
        return self.step.error is not None

    @property
    def op(self) -> str:
        """The op that an exception names which no kernel of the graph has raised."""
        return "interpreted graph" if self.call is None else self.call.op

    def done(self) -> None:
        """Called when no node is ready; ends the part unless deferred nodes run."""
        self._is_running = False
        if not self._calls:
            self._ended(self)

    def fail(self, error: PartitaError) -> None:
        """Fails the step with the error of a node, to which the calls that led here are added."""
        self.step.fail(add_call_chain(self.call, self.function, error))

    def _continue(self) -> None:
        self._is_running = True
        self.actor.post(Continue(self, self._work()))

    def _work(self) -> TurnedWork:
        pacer, limit, since = self.actor.pacer, 1, 0.0
        while self.run(limit):
            now = pacer.clock()
            limit = _NODES_BETWEEN_LOOKS if now - since < limit * _SLOW_S else 1
            since = now
            if now > pacer.slice.end:
                yield None
        return ()

    @property
    def _is_waiting_for_calls(self) -> bool:
        return bool(self._calls)

    def _launch(self, token: Token, part: Interpretation, inputs: list[Any]) -> None:
        number, self._num_calls = self._num_calls, self._num_calls + 1
        self._calls[number] = token
        PendingCall(self, number).launch(partial(part.start, token.node), inputs)


def start_interpreted(
    step: Step,
    graph: Interpretation,
    actor: DeviceActor,
    feeds: list[object],
    kind: type[InterpretedPart] = InterpretedPart,
    scope: TraceScope | None = None,
    *,
    keeps_last: bool = False,
) -> InterpretedPart:
    """Starts a step that interprets an uncut graph on one actor; the part has the results when the step is done."""
    part = kind(step, graph, actor, feeds, step.part_ended, scope=scope, keeps_last=keeps_last)
    step.begin(1)
    part.start()
    return part
