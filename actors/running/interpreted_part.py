"""A graph with unusual loops under way: interpreted by one actor, uncut, whatever devices its nodes are on.

Flows in: an `Interpretation`, feeds, the step it belongs to. Flows out: results by index. Always holds: each node
computes with the kernel, and the state, of its own device; nodes whose outputs come later are waited for while others
go on; the event loop has its turn when the budget is used up, and a step that has failed goes no further.

    RUNNING --nothing is ready, calls are under way--> WAITING --the outputs of one are there--> RUNNING
       `----nothing is ready, and no call is under way--> ended
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ...errors import PartitaError
from ..plans.instructions import DEAD, read
from .messages import GoOn, Work
from .pending import PendingCall, Place, called_from
from .reference import Reference

if TYPE_CHECKING:
    from .device_actor import DeviceActor
    from .frames import Token
    from .interpretation import Interpretation
    from .step import Step

_NODES_BETWEEN_LOOKS = 20  # at the clock: some 100 us

Values = Sequence[Any]  # tensors of any type


class InterpretedPart(Reference):
    """See the module. It stands in a step where the `Part`s of a compiled graph would."""

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
    ) -> None:
        """`depth` is that of a `Part`; `call` called the function that the graph is the body of, if it is one."""
        super().__init__([graph], feeds)
        self.step = step
        self.actor = actor
        self.call = call
        self.function = function
        self.depth = depth
        self.frame = ""
        self._ended = ended
        self._is_running = False
        self._calls: dict[int, Token] = {}  # the nodes that made those under way
        self._num_calls = 0

    def start(self, frame: str = "") -> None:
        """Begins to interpret."""
        self.frame = frame
        self._go_on()

    def result(self, index: int) -> Any:
        """What the graph has computed as result `index`; DEAD if nothing."""
        return read(self.results.get(index, DEAD))

    def place_of(self, number: int) -> Place:
        """Where call number `number` is made."""
        node, graph = self._calls[number].node, self.parts[0]
        return Place(graph.names[node], graph.properties[node].op, graph.devices[node])

    def arrive(self, number: int, outputs: Values) -> None:
        """The outputs of a call are there."""
        self._propagate(self._calls.pop(number), list(outputs))
        if not self._is_running:
            self._go_on()

    @property
    def trace(self) -> None:
        """What is interpreted is not traced."""
        return None

    # What an actor asks of those whose work it does in turns

    @property
    def is_ended(self) -> bool:
        """Whether the step has failed, so that nobody wants the results any more."""
        return self.step.error is not None

    @property
    def op(self) -> str:
        """The op to which an exception is put down that comes from no kernel of the graph."""
        return "interpreted graph" if self.call is None else self.call.op

    def done(self) -> None:
        """Nothing is ready."""
        self._is_running = False
        if not self._calls:
            self._ended(self)

    def fail(self, error: PartitaError) -> None:
        """A node has failed, and the step with it."""
        self.step.fail(called_from(self.call, self.function, error))

    def _go_on(self) -> None:
        self._is_running = True
        self.actor.post(GoOn(self, self._work()))

    def _work(self) -> Work:
        end = self.actor.deadline()
        while self.run(limit=_NODES_BETWEEN_LOOKS):
            if perf_counter() > end:
                yield
                end = self.actor.deadline()
        return ()

    @property
    def _is_waiting_for_calls(self) -> bool:
        return bool(self._calls)

    def _launch(self, token: Token, part: Interpretation, inputs: list[Any]) -> None:
        number, self._num_calls = self._num_calls, self._num_calls + 1
        self._calls[number] = token
        PendingCall(self, number).launch(partial(part.start, token.node), inputs)


def start_interpreted(step: Step, graph: Interpretation, actor: DeviceActor, feeds: list[object]) -> InterpretedPart:
    """Starts to interpret an uncut graph on one actor; the part that knows the results when the step is done."""
    part = InterpretedPart(step, graph, actor, feeds, step.part_ended)
    step.begin(1)
    part.start()
    return part
