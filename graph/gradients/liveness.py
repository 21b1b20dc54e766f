"""Under which outcomes of which predicates a value is live: what a conditional, or an iteration, makes of a frame.

Flows in: a graph, its loops. Flows out: the `Condition` of an output within its frame. Always holds: a Switch adds an
outcome to what its inputs need; a node needs all that its inputs need, control inputs too; a Merge what all its inputs
have in common. Every value at the head of an iteration is live.

    x, p -> Switch:1 -> Sin  ->\\                 Sin: p was true
                   :0 -> Exp  -> Merge            Exp: p was false            Merge: always
"""

from __future__ import annotations

from typing import NamedTuple

from ..analysis.data_edges import DataEdges, Output
from ..columns import CONTROL_SLOT, SINK_ID, SOURCE_ID
from ..graph import Graph
from ..ops.record import NodeClass
from .loops import Loop, Loops


class Outcome(NamedTuple):
    """Output `port` of a Switch on `predicate` has a value; it has as many outputs as there are `ways`."""

    predicate: Output
    port: int
    ways: int


Condition = tuple[Outcome, ...]
"""outer ones first"""


class Liveness:
    """Conditions, worked out when asked for."""

    def __init__(self, graph: Graph, edges: DataEdges, loops: Loops) -> None:
        """Nodes added to the graph later have the conditions that `declare` says."""
        self._graph = graph
        self._edges = edges
        self._loops = loops
        self._known: dict[int, Condition] = {}
        self._declared: dict[int, Condition] = {}

    def declare(self, node: int, condition: Condition) -> None:
        """Says under what condition the outputs of a new node are live."""
        self._declared[node] = condition

    def of(self, output: Output) -> Condition:
        """When an output has a value."""
        node, port = output
        if node in self._declared:
            return self._declared[node]
        self._work_out(node)
        condition = self._known[node]
        if port == CONTROL_SLOT or self._kind(node) is not NodeClass.SWITCH:
            return condition
        ways = len(self._graph.node_properties(node).output_types)
        return _joined(condition, (Outcome(self._predicate(node), port, ways),))

    def of_loop(self, loop: Loop) -> Condition:
        """When a loop is run at all."""
        return self.of(self.gate(loop))

    def gate(self, loop: Loop) -> Output:
        """One of the values that enter a loop that is live only if all are."""
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
        """What decides whether a node is live: data inputs first."""
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

    def _of_inputs(self, node: int, inputs: list[Output]) -> Condition:
        kind = self._kind(node)
        if kind is NodeClass.CONTROL_TRIGGER or not inputs:
            return ()
        conditions = [self.of(source) for source in inputs]
        if kind is NodeClass.MERGE:
            data = conditions[: len(self._edges.sources(node))]
            return tuple(outcome for outcome in data[0] if all(outcome in other for other in data[1:]))
        found: Condition = ()
        for condition in conditions:
            found = _joined(found, condition)
        return found

    def _predicate(self, switch: int) -> Output:
        """What a Switch goes by, without nodes that only pass it on."""
        output = self._edges.sources(switch)[1]
        while self._kind(output[0]) is NodeClass.IDENTITY:
            output = self._edges.sources(output[0])[0]
        return output

    def _kind(self, node: int) -> NodeClass:
        return self._graph.node_properties(node).op_def.record.node_class


def _joined(first: Condition, second: Condition) -> Condition:
    if not second or second == first:
        return first
    return first + tuple(outcome for outcome in second if outcome not in first)
