"""The shape inference of an import, which refuses what TensorFlow's import refuses.

It is the walk of `walk.py`, once over every node, with TensorFlow's rules for nodes that are looked at one by one:

    While, If, Case       the shapes that the attr `output_shapes` promises; without it those of a While's inputs
    Enter                 unknown, but for what stays the same in all iterations
    Merge                 unknown where it closes a loop
    Switch                the value of its input is not followed

Called functions are looked through. Shapes written as `_output_shapes` are merged with the inferred ones. Nodes that
the graph had before only tell shapes: what contradicts there was accepted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ...errors import PartitaError
from ..analysis.joined import JoinedGraph
from ..analysis.shape_functions import lookup, merge
from ..arrays import Numbers, grouped
from ..columns import CONTROL_SLOT, SINK_ID, Ids
from ..dtypes import Shapes
from ..graph import Graph
from ..library.calls import flag
from ..ops.properties import NodeProperties
from ..ops.record import LOOPS, Calls, NodeClass
from .calls import ShapedCall, walk_with_calls
from .constant_inputs import NOT_VISITED
from .import_errors import in_context
from .op_shapes import context_of
from .outcomes import NOTHING, InferenceOutcome
from .walk import GraphWalk, VisitKind
from .written_shapes import with_written

_UNCHECKED = "_disable_call_shape_inference"
_FROM_ATTRS = (Calls.IF, Calls.CASE, *LOOPS)


def check_shapes(graph: Graph, first: int, producer: int) -> None:
    """Raises the error of the first node from id `first` on whose shapes contradict its op, an InvalidArgumentError.

    `producer` is the version of the graph. Every input of the nodes from `first` on is connected.
    """
    part, num_before = _with_what_it_reads(graph, first)
    if part is not None:
        walk = ImportWalk(JoinedGraph({"": part}, joins_transfers=False), {})
        walk.producer, walk.num_before, walk.is_sorted = producer, num_before, not num_before
        walk_with_calls(walk, lambda call: ImportWalk.of_call(call, walk))


class ImportWalk(GraphWalk):
    """The walk of an imported graph, or of the body of a function that it calls."""

    num_before = 0
    """the first so many nodes were in the graph before"""
    is_sorted = False
    """nodes come after their inputs, as an import creates them"""

    def _choose_ways(self, num_outputs: Numbers) -> Ids:
        ways = np.where(num_outputs == 1, VisitKind.LOOK_UP_ONE, VisitKind.LOOK_UP).astype(np.int32)
        ways[np.array([kind.op_def.record.asks_values for kind in self.graph.kinds], np.bool_)[self.graph.kind_of]] = (
            VisitKind.ALONE
        )
        ways[list(self.fed)] = VisitKind.ALONE
        return ways

    def run(self) -> Iterator[ShapedCall]:
        """Infers all shapes; yields the calls whose result shapes it needs before it can go on."""
        self._ways[: self.num_before] = VisitKind.ALONE
        yield from self._pass(np.arange(len(self.graph), dtype=np.int32) if self.is_sorted else self.graph.order())

    def _refined(self, n: int, properties: NodeProperties, shapes: Shapes) -> Shapes:
        return with_written(self.graph.names[n], properties, shapes) if n >= self.num_before else shapes

    def _outcome(self, n: int, kind: int, inputs: Sequence[int]) -> InferenceOutcome:
        properties = self.graph.kinds[kind]
        node_class = self.graph.classes[kind]
        try:
            if node_class is NodeClass.ENTER:
                return self._entered(properties, inputs[0])
            outcome = super()._outcome(n, kind, inputs)
            behind = self.facts.behind[inputs[0]] if properties.op_def.record.takes_over else None
            if behind is not None:  # a variable keeps its shape
                merge(behind[0], self.facts.shapes[inputs[1]])
        except PartitaError as error:
            if n < self.num_before:
                return InferenceOutcome((None,) * len(properties.output_types))
            raise self._with_context(error, n, inputs) from None
        if node_class is NodeClass.SWITCH:
            outcome.values = ()
        return outcome

    def _entered(self, properties: NodeProperties, source: int) -> InferenceOutcome:
        function = lookup(properties.op)
        inputs = (self.facts.shapes[source],)
        shapes = inputs if function is None else tuple(function(context_of(properties, inputs, NOTHING)))
        values = (self.facts.values[source],) if shapes == inputs else ()
        return InferenceOutcome(shapes, values, (self.facts.behind[source],))

    def _merge(self, n: int, inputs: Sequence[int]) -> InferenceOutcome:
        return InferenceOutcome((None, ())) if NOT_VISITED in inputs else super()._merge(n, inputs)

    def _called(self, n: int, properties: NodeProperties, inputs: Sequence[int]) -> InferenceOutcome | None:
        is_looked_through = properties.op_def.record.calls not in _FROM_ATTRS and not flag(properties, _UNCHECKED)
        return super()._called(n, properties, inputs) if is_looked_through else None

    def _with_context(self, error: PartitaError, n: int, inputs: Sequence[int]) -> PartitaError:
        facts, properties = self.facts, self.graph.properties_of(n)
        known = {i: value for i, fact in enumerate(inputs) if (value := facts.values[fact]) is not None}
        known |= self.constants.of(n) if properties.op_def.record.asks_values else {}
        context = context_of(properties, tuple([facts.shapes[fact] for fact in inputs]), known, self.producer)
        return in_context(error, self.graph, n, context)


def _with_what_it_reads(graph: Graph, first: int) -> tuple[Graph | None, int]:
    """The nodes from id `first` on, with those that they read from, and how many of these there are.

    None if a node that the graph had before, and that tells shapes, lacks inputs.
    """
    if first == SINK_ID + 1:
        return graph, 0
    edges = graph.edge_arrays()
    is_data = edges.src_output != CONTROL_SLOT
    starts, order = grouped(edges.dst[is_data], graph.num_node_ids)
    sources = edges.src[is_data][order]
    keep = np.zeros(graph.num_node_ids, np.bool_)
    keep[first:] = keep[: SINK_ID + 1] = True
    waiting = list({source for source in sources[starts[first] :].tolist() if source < first})
    while waiting:
        n = waiting.pop()
        if not keep[n]:
            keep[n] = True
            read = sources[starts[n] : starts[n + 1]].tolist()
            waiting += read
            if len(read) < len(graph.node_properties(n).input_types):
                return None, 0
    return graph.copy(keep), int(keep[:first].sum()) - SINK_ID - 1
