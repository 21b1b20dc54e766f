r"""Under which outcomes of which predicates a value is alive, within its frame.

A Switch adds an outcome to the condition of its inputs. A node needs the conditions of all its inputs, control inputs
included; a Merge needs what the conditions of its inputs have in common. Every value at the begin of an iteration is
alive.

    x, p -> Switch:1 -> Sin  ->\\                 Sin: p was true
                   :0 -> Exp  -> Merge            Exp: p was false            Merge: always
"""

from __future__ import annotations

from typing import NamedTuple

from ..analysis.data_edges import DataEdges
from ..columns import CONTROL_SLOT, SINK_ID, SOURCE_ID
from ..edge_ends import Output
from ..graph import Graph
from ..ops.record import NodeClass
from .loops import DifferentiatedLoop, Loops


class BranchOutcome(NamedTuple):
    """Output `port` of a Switch on `predicate` is alive; the Switch has `ways` outputs."""

    predicate: Output
    port: int
    ways: int


BranchOutcomes = tuple[BranchOutcome, ...]
"""outcomes, those of outer conditionals first"""


class GradientLiveness:
    """Conditions of outputs, computed on demand."""

    def __init__(self, graph: Graph, edges: DataEdges, loops: Loops) -> None:
        """For nodes added later, `declare` sets the condition."""
        self._graph = graph
        self._edges = edges
        self._loops = loops
        self._known: dict[int, BranchOutcomes] = {}
        self._declared: dict[int, BranchOutcomes] = {}

    def declare(self, node: int, condition: BranchOutcomes) -> None:
        """Sets the condition of the outputs of a new node."""
        self._declared[node] = condition

    def of(self, output: Output) -> BranchOutcomes:
        """The condition under which an output is alive."""
        node, port = output
        if node in self._declared:
            return self._declared[node]
        self._work_out(node)
        condition = self._known[node]
        if port == CONTROL_SLOT or self._kind(node) is not NodeClass.SWITCH:
            return condition
        ways = len(self._graph.node_properties(node).output_types)
        return _joined(condition, (BranchOutcome(self._predicate(node), port, ways),))

    def of_loop(self, loop: DifferentiatedLoop) -> BranchOutcomes:
        """The condition under which a loop runs."""
        return self.of(self.gate(loop))

    def gate(self, loop: DifferentiatedLoop) -> Output:
        """One of the values that enter a loop, alive only if all of them are."""
        return max((self._edges.sources(variable.enter)[0] for variable in loop.variables), key=self._depth)

    def _depth(self, output: Output) -> int:
        return len(self.of(output))

    def _work_out(self, wanted: int) -> None:
        waiting = [wanted]
        while waiting:
            node = waiting[-1]
            if node in self._known:
                waiting.pop()
                continue
            inputs = self._inputs(node)
            missing = [src for src, _ in inputs if src not in self._known]
            if missing:
                waiting += missing
            else:
                self._known[node] = self._of_inputs(node, inputs)

    def _inputs(self, node: int) -> list[Output]:
        """The outputs whose liveness decides that of a node: data inputs first."""
        loop = self._loops.of_exit.get(node)
        if loop is not None:
            return [self._edges.sources(variable.enter)[0] for variable in loop.variables]
        if self._loops.sources(node) == ():
            return []
        control = [
            (src, CONTROL_SLOT)
            for src, _, _, slot in map(self._graph.edge_ends, self._graph.in_edge_ids(node))
            if slot == CONTROL_SLOT and src not in (SOURCE_ID, SINK_ID)
        ]
        return [*self._edges.sources(node), *control]

    def _of_inputs(self, node: int, inputs: list[Output]) -> BranchOutcomes:
        kind = self._kind(node)
        if kind is NodeClass.CONTROL_TRIGGER or not inputs:
            return ()
        conditions = [self.of(source) for source in inputs]
        if kind is NodeClass.MERGE:
            data = conditions[: len(self._edges.sources(node))]
            return tuple(outcome for outcome in data[0] if all(outcome in other for other in data[1:]))
        needed: BranchOutcomes = ()
        for condition in conditions:
            needed = _joined(needed, condition)
        return needed

    def _predicate(self, switch: int) -> Output:
        """The predicate of a Switch, followed back through nodes that only pass it on."""
        output = self._edges.sources(switch)[1]
        while self._kind(output[0]) is NodeClass.IDENTITY:
            output = self._edges.sources(output[0])[0]
        return output

    def _kind(self, node: int) -> NodeClass:
        return self._graph.node_properties(node).op_def.record.node_class


def _joined(first: BranchOutcomes, second: BranchOutcomes) -> BranchOutcomes:
    if not second or second == first:
        return first
    return first + tuple(outcome for outcome in second if outcome not in first)
