"""The kernels of a step as an oracle: a node is computed when its device takes it, and shapes say how long that is.

What the player of a simulation knows beforehand, branches and counts of loops among it, nobody knows here: every body
is a whole level and is asked (`devices/timing/playing/asking`).

    free node               is computed at once, and passes
    computed by a kernel    is computed when its device takes it; on a GPU when it is launched
    receive                 its bytes are those of the tensor that was sent
    deferred node           (a queue, a call) its kernel is started, and gives the outputs later

An error of a kernel fails the step; from then on nothing of it is played.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from ....devices.timing.bodies.body import NodePart, is_small
from ....devices.timing.playing.activation import Activation, PlayedLoop
from ....devices.timing.playing.oracle import Computed, LoopTurns
from ....errors import InternalError, PartitaError, of_kernel
from ....graph.dtypes import item_size
from ....graph.ops.record import Calls
from ...plans.instructions import DEAD, passed_on
from ...plans.output_checks import check_received
from ...plans.roles import Role
from .body import dims_of
from .kernel_call import KernelCall
from .seats import seat_with

if TYPE_CHECKING:
    from ....devices.timing.bodies.body import Body, SeatedNode
    from ....devices.timing.costs.source import OpCost
    from ....devices.timing.playing.activation import NodeFacts, Playing
    from ....devices.timing.playing.oracle import AskedIteration
    from ....devices.timing.playing.player import Player
    from ....graph.dtypes import Dims
    from ..step import Step
    from .clock import VirtualClock
    from .graph_run import GraphRun


class KernelOracle:
    """Answers for the nodes of one step; an `oracle.NodeOracle`."""

    def __init__(self, step: Step, clock: VirtualClock) -> None:
        self.step = step
        self.clock = clock
        self.player: Player
        self.runs: dict[Activation, GraphRun] = {}
        """the runs of graphs that are under way, by the activation of what is outside their loops"""
        self._is_closed = False
        self._inputs: dict[int, list[Any]] = {}  # of deferred nodes that have begun, by row

    @property
    def is_over(self) -> bool:
        """Whether the step has failed, or is over."""
        return self._is_closed or self.step.error is not None

    def run_of(self, activation: Activation) -> GraphRun:
        """The run of the graph that an activation belongs to."""
        while isinstance(activation.run, PlayedLoop):
            activation = activation.run.parent
        return self.runs[activation]

    def close(self) -> None:
        """The step has ended: what it has left keeps no tensor, however long its record is kept."""
        self._is_closed = True
        self.runs.clear()
        self._inputs.clear()
        for activation in self.player.activations:
            activation.tokens = None

    # Bodies

    def turns(self, _parent: Activation, _frame: int, *, is_dead: bool) -> LoopTurns:  # nothing is known
        """Nobody knows how often a loop runs."""
        return LoopTurns(None, 0, is_uniform=False)

    def body(self, iteration: AskedIteration) -> Body:
        """The whole level of a loop."""
        return self.run_of(iteration.parent).body.bodies.body(iteration.frame)

    def call(self, player: Playing, caller: Activation, node: int) -> KernelCall:
        """Whatever the kernel of the node calls."""
        run = self.run_of(caller)
        kind: Calls | None = run.body.graph.properties[run.body.number(caller, node)].op_def.record.calls
        return KernelCall(player, caller, node, kind, self)

    # Nodes

    def is_dead(self, value: Any) -> bool:
        """Whether an output is a dead token."""
        return value is DEAD

    def is_small(self, inputs: list[Any]) -> bool:
        """Whether a node with these inputs takes little."""
        return is_small(map(dims_of, inputs))

    def compute(self, activation: Activation, node: int, inputs: list[Any]) -> Computed | None:
        """Computes the outputs of a live node and what they cost; an error is located, and fails the step."""
        run = self.run_of(activation)
        try:
            outputs = self._outputs(run, activation, node, inputs)
            cost = self._record(run, activation, node, inputs, outputs)
        except Exception as error:  # noqa: BLE001 - a kernel may raise anything
            _fail(run, activation, node, error)
            return None
        except BaseException as error:  # noqa: BLE001 - KeyboardInterrupt: raised again by Step.wait
            self.step.interrupt(error)
            return None
        return Computed(outputs, cost.time_ns, cost.provenance == "free")

    def _outputs(self, run: GraphRun, activation: Activation, node: int, inputs: list[Any]) -> list[Any]:
        number = run.body.number(activation, node)
        kernel = run.body.kernels[number]
        run.body.check_modelled(number)
        if kernel.role is Role.ARG:
            return [run.argument(kernel.part.properties[kernel.node].attrs["index"])]
        if kernel.role is Role.RETVAL:
            when = tuple(turn.number for turn in activation.place.loops)
            run.results.store(kernel.part.properties[kernel.node].attrs["index"], when, passed_on(inputs[0]))
            return []
        return kernel.part.outputs(kernel.node, inputs)

    def sent(self, activation: Activation, node: int, inputs: list[Any]) -> Any:
        """The tensor itself."""
        _facts(activation).shapes[node] = ()
        return passed_on(inputs[0])

    def received(self, activation: Activation, node: int, value: Any) -> int | None:
        """The bytes of a tensor; an error of another type than the receive expects fails the step."""
        run, facts = self.run_of(activation), _facts(activation)
        properties = run.body.graph.properties[run.body.number(activation, node)]
        try:
            check_received(value, properties.output_types[0])
        except InternalError as error:
            _fail(run, activation, node, error)
            return None
        facts.shapes[node] = (dims_of(value),)
        size = facts.sizes[node] = prod(dims_of(value)) * item_size(properties.output_types[0])
        return size

    def start(self, activation: Activation, node: int, inputs: list[Any]) -> None:
        """Starts the kernel of a node that waits for something."""
        self._inputs[activation.base + node] = inputs
        self.run_of(activation).launch(activation, node, inputs)

    def joins(self, activation: Activation, node: int, inputs: list[Any]) -> SeatedNode | None:
        """Starts the kernel of a member of a collective; an error of it fails the step."""
        run = self.run_of(activation)
        run.launch(activation, node, inputs)
        if self.is_over:
            return None
        seated = seat_with(run.body.graph.properties[run.body.number(activation, node)], inputs)
        _facts(activation).seats[node] = seated
        return seated

    def arrived(self, activation: Activation, node: int, outputs: Sequence[Any]) -> None:
        """A deferred node has its outputs."""
        assert self.player.asking is not None  # as this oracle is asked
        call = activation.calls.get(node)
        asked = activation.body.asked
        is_member = asked is not None and asked.parts[node] is NodePart.JOINS
        if is_member or isinstance(call, KernelCall):
            _facts(activation).shapes[node] = _shapes(outputs)
        if isinstance(call, KernelCall):
            self.player.asking.arrived(activation, node, list(outputs), call.cause)
        else:
            self.player.asking.arrived(activation, node, list(outputs))
        self.clock.post(self.player)

    def finish(self, activation: Activation, node: int, outputs: Sequence[Any]) -> int | None:
        """How long a node takes after its wait; an error of the source of costs fails the step."""
        run, inputs = self.run_of(activation), self._inputs.pop(activation.base + node)
        try:
            cost = self._record(run, activation, node, inputs, outputs)
        except PartitaError as error:
            run.fail(error)
            return None
        sizes = tuple(map(dims_of, inputs)), tuple(map(dims_of, outputs))
        return max(cost.time_ns - run.body.waits_ns(run.body.number(activation, node), *sizes), 0)

    def _record(
        self, run: GraphRun, activation: Activation, node: int, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> OpCost:
        facts, shapes = _facts(activation), _shapes(outputs)
        sizes = tuple([shape or () for shape in shapes])  # a dead output is a scalar to the source of costs
        cost = run.body.price(run.body.number(activation, node), tuple(map(dims_of, inputs)), sizes, self.clock)
        facts.costs[node] = cost
        facts.shapes[node] = shapes
        return cost


def _shapes(outputs: Sequence[Any]) -> tuple[Dims | None, ...]:
    """The shapes of outputs, None of dead ones."""
    return tuple([None if output is DEAD else dims_of(output) for output in outputs])


def _fail(run: GraphRun, activation: Activation, node: int, error: Exception) -> None:
    """Fails the step with the error of a node. No variable of its caller may hold it: its traceback has that frame."""
    name, op, device = run.place(activation, node)
    run.fail(of_kernel(op, error).located(node=name, op=op, device=device))


def _facts(activation: Activation) -> NodeFacts:
    assert activation.facts is not None  # as its body is asked
    return activation.facts
