"""Which nodes of a graph have the same value in every step: constants, and nodes that depend on nothing else.

Never foldable are stateful, control flow, transfer, session handle and function call nodes, and nodes without a kernel.
Control inputs do not make a node unfoldable; the constant that replaces it waits for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ...analysis.value_rules import VALUES, evaluate, is_partial
from ...columns import CONTROL_SLOT, SINK_ID, SOURCE_ID
from ...dtypes import Array, Shape
from ...graph import Graph
from ...ops.properties import NodeProperties
from ...ops.record import CONTROL_FLOW, NodeClass
from ...ops.registry import find_op

ShapesByNode = Mapping[str, Sequence[Shape]]
"""node name -> shape per output"""

_NEVER = CONTROL_FLOW | {
    NodeClass.SEND,
    NodeClass.HOST_SEND,
    NodeClass.RECV,
    NodeClass.HOST_RECV,
    NodeClass.GET_SESSION_HANDLE,
    NodeClass.GET_SESSION_TENSOR,
    NodeClass.DELETE_SESSION_TENSOR,
}


class Foldable:
    """The foldable nodes of one graph."""

    def __init__(
        self,
        graph: Graph,
        can_run: Callable[[NodeProperties], bool],
        shapes: ShapesByNode,
    ) -> None:
        """A shape op of tensors with known `shapes` is foldable whatever it reads."""
        self.graph = graph
        self.is_const = graph.flags(lambda kind: kind.op_def.record.node_class is NodeClass.CONSTANT)
        may = graph.flags(lambda kind: _may_fold(kind, can_run))
        may[: SINK_ID + 1] = False
        self.of_shapes = _values_of_shapes(graph, may, shapes)
        self.flags = self._spread(may)
        self._waits_for: dict[int, frozenset[int]] = {}

    def _spread(self, may: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Starting at constants, marks every node all of whose data inputs are foldable."""
        edges = self.graph.edge_arrays()
        data = (edges.src_output != CONTROL_SLOT) & may[edges.dst]
        src, dst = edges.src[data], edges.dst[data]
        known = np.zeros_like(may)
        known[list(self.of_shapes)] = True
        count = -1
        while count != (count := int(known.sum())):
            reads_other = np.bincount(dst[~known[src]], minlength=len(may)) > 0
            known |= may & ~reads_other
        return known

    def waits_for(self, node: int) -> frozenset[int]:
        """The unfoldable nodes that a foldable node waits for, directly or through foldable ones."""
        stack = [node]
        while stack:
            last = stack[-1]
            sources = {self.graph.edge_ends(edge)[0] for edge in self.graph.in_edge_ids(last)} - {SOURCE_ID}
            open_ones = [src for src in sources if self.flags[src] and src not in self._waits_for]
            if open_ones:
                stack += open_ones
                continue
            own = [src for src in sources if not self.flags[src]]
            of_sources = [self._waits_for[src] for src in sources if self.flags[src]]
            self._waits_for[stack.pop()] = frozenset(own).union(*of_sources)
        return self._waits_for[node]


def _may_fold(kind: NodeProperties, can_run: Callable[[NodeProperties], bool]) -> bool:
    if kind.op_def.record.node_class is NodeClass.CONSTANT:
        return True
    calls = find_op(kind.op) is not kind.op_def or any("func" in attr.type for attr in kind.op_def.attrs.values())
    return not (kind.op_def.is_stateful or calls or kind.op_def.record.node_class in _NEVER) and can_run(kind)


def _values_of_shapes(graph: Graph, may: npt.NDArray[np.bool_], shapes: ShapesByNode) -> dict[int, list[Array]]:
    """The nodes whose outputs follow from known shapes of what they read, such as Shape ops, with these outputs."""
    of_shapes = {}
    for node in map(graph.node, np.flatnonzero(may).tolist() if shapes else ()):
        if node.op in VALUES and node.num_inputs:
            read = [_shape_at(shapes.get(edge.src.name, ()), edge.src_output) for edge in node.input_edges()]
            values = evaluate(node.properties, read, [None] * len(read))
            known = [value for value in values if value is not None and not is_partial(value)]
            if len(known) == len(values):
                of_shapes[node.id] = known
    return of_shapes


def _shape_at(shapes: Sequence[Shape], port: int) -> Shape:
    return shapes[port] if port < len(shapes) else None
