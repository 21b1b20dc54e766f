"""Finds where a forward pass uses a value of the whole batch, or a loss is no mean or sum over rows.

    m = Mean(x, axis 0); x - m                 a row is combined with what was computed from all
    Sqrt(Mean(losses)), Sum(l * w) / Sum(w)    not what a mean of the replicas' values gives
    Max(x, axis 0)                             nor is this
    MatMul(x, x) {transpose_b}                 each row is combined with each other

Counts and sizes are no values of the batch: a division by the number of rows is part of a mean.
"""

from __future__ import annotations

from ...dtypes import FLOATS, base_type
from ...edge_ends import Output
from ...library.calls import calls_functions
from ...ops.properties import NodeProperties
from ...ops.record import NodeClass
from ..training_step import TrainingStep

_NOT_COMPUTING = (NodeClass.SWITCH, NodeClass.MERGE, NodeClass.ENTER, NodeClass.EXIT, NodeClass.NEXT_ITERATION)


def mixing_node(step: TrainingStep) -> int | None:
    """The first node of the forward pass that replicas cannot compute from their rows; None if there is none."""
    search = _MixingSearch(step)
    return next((node for node in step.flow.order if search.mixes(node) or search.is_early(node)), None)


class _MixingSearch:
    """What is known of the nodes that were visited."""

    def __init__(self, step: TrainingStep) -> None:
        self.step = step
        self.nodes = step.forward & step.dependent
        self.by_shape: set[int] = set()  # nodes that depend on the batch by its size only
        self.parts: set[int] = set()  # nodes of the backward pass that give a gradient, or a part of one

    def mixes(self, node: int) -> bool:
        """Whether a node mixes rows; nodes are asked for in topological order."""
        kind = self.step.flow.kinds[node]
        if node not in self.nodes or node in self.step.batch or kind is None:
            return False
        record = kind.op_def.record
        sources = self.step.flow.sources[node]
        varying = [source for source in sources if source[0] in self.nodes and source[0] not in self.by_shape]
        if not varying or record.reads_shape:
            self.by_shape.add(node)
            return False
        if calls_functions(kind, self.step.graph.functions) or record.node_class in _NOT_COMPUTING or record.state:
            return False
        floats = [source for source in varying if self._is_float(source)]
        if not floats or not kind.output_types or base_type(kind.output_types[0]) not in FLOATS:
            return False
        whole = [source for source in floats if not self.step.shapes.has_rows(source)]
        has_rows = self.step.shapes.has_rows((node, 0))
        if len(whole) < len(floats):
            if has_rows:
                axes = self.step.shapes.row_axes
                return bool(whole) or (axes((node, 0)) > 1 and max(map(axes, floats)) == 1)
            is_sum = record.is_additive or record.linear_inputs or record.sums_segments
            return record.family == "reductions" and not is_sum
        return not self._is_linear(kind, sources, whole)

    def is_early(self, node: int) -> bool:
        """Whether a node computes something of a gradient, or of a part of one, before it is that of all rows.

        Only sums may do that. What else reads gradients belongs to the update region.
        """
        kind = self.step.flow.kinds[node]
        if kind is None or node not in self.step.backward - self.step.region:
            return False
        sources = self.step.flow.sources[node]
        varying = [source for source in sources if source[0] in self.step.dependent and source[0] not in self.by_shape]
        if not varying or kind.op_def.record.reads_shape:
            self.by_shape.add(node)
            return False
        floats = [source for source in varying if self._is_float(source)]
        of_rows = [s for s in floats if s[0] in self.step.backward and self.step.shapes.has_rows(s)]
        parts = [s for s in floats if s[0] in self.parts and not self.step.shapes.has_rows(s)]
        is_part = (of_rows or parts) and kind.output_types and base_type(kind.output_types[0]) in FLOATS
        if is_part and not self.step.shapes.has_rows((node, 0)):
            self.parts.add(node)
        record = kind.op_def.record
        if not parts or record.state or record.node_class in _NOT_COMPUTING:
            return False
        if calls_functions(kind, self.step.graph.functions):
            return False
        return len(parts) < len(floats) or not self._is_linear(kind, sources, parts)

    def _is_float(self, source: Output) -> bool:
        kind = self.step.flow.kinds[source[0]]
        return kind is not None and base_type(kind.output_types[source[1]]) in FLOATS

    @staticmethod
    def _is_linear(kind: NodeProperties, sources: list[Output], whole: list[Output]) -> bool:
        """Whether a node is linear in those inputs that are values of the whole batch."""
        record = kind.op_def.record
        if record.is_additive or record.passes_on or record.regroups or record.is_view or record.linear_inputs < 0:
            return True
        ports = [port for port, source in enumerate(sources) if source in whole]
        return len(ports) == 1 and ports[0] < record.linear_inputs
