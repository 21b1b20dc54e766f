"""Which nodes of a graph have the same value in every step: constants, and what is computed from nothing else.

Flows in: a graph, what is known of shapes, and who can run which kernels. Flows out: flags by node id, the values that
follow from shapes alone, and for each such node the nodes it has to wait for all the same. Always holds: nodes with
state, of control flow, that transfer, keep session handles, call functions, or that the evaluator has no kernel for,
are never foldable; control inputs do not keep a node from being foldable, they are waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..columns import CONTROL_SLOT, SINK_ID, SOURCE_ID
from ..dtypes import Array, Shape, numpy_dtype
from ..graph import Graph
from ..node import Node
from ..ops.properties import NodeProperties
from ..ops.record import CONTROL_FLOW, NodeClass
from ..ops.registry import find_op

Shapes = Mapping[str, Sequence[Shape]]
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
        shapes: Shapes,
        consider: Callable[[Node], bool] | None,
    ) -> None:
        """`consider` may refuse nodes; a shape op of tensors whose `shapes` are known is foldable whatever it reads."""
        self.graph = graph
        kinds, kind_of = graph.distinct_properties()
        self.is_const = _flags(kinds, kind_of, lambda kind: kind.op_def.record.node_class is NodeClass.CONSTANT)
        may = _flags(kinds, kind_of, lambda kind: _may_fold(kind, can_run))
        may[: SINK_ID + 1] = False
        if consider is not None:
            may[[node for node in np.flatnonzero(may).tolist() if not consider(graph.node(node))]] = False
        self.of_shapes = _values_of_shapes(graph, may, shapes)
        self.flags = self._spread(may)
        self._waits_for: dict[int, frozenset[int]] = {}

    def _spread(self, may: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """From the constants on, everything that reads only what is foldable."""
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
        """The nodes whose end a foldable node waits for: not foldable themselves, reached through foldable ones."""
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


def _flags(
    kinds: Sequence[NodeProperties], kind_of: npt.NDArray[np.int64], holds: Callable[[NodeProperties], bool]
) -> npt.NDArray[np.bool_]:
    """By node id, what holds for the node's kind; False for removed nodes."""
    return np.array([*map(holds, kinds), False])[kind_of]


def _may_fold(kind: NodeProperties, can_run: Callable[[NodeProperties], bool]) -> bool:
    if kind.op_def.record.node_class is NodeClass.CONSTANT:
        return True
    calls = find_op(kind.op) is not kind.op_def or any("func" in attr.type for attr in kind.op_def.attrs.values())
    return not (kind.op_def.is_stateful or calls or kind.op_def.record.node_class in _NEVER) and can_run(kind)


_OF_SHAPES: Mapping[str, Callable[[Sequence[int]], Any]] = {
    "Shape": lambda sizes: sizes,
    "ShapeN": lambda sizes: sizes,
    "Size": np.prod,
    "Rank": len,
}


def _values_of_shapes(graph: Graph, may: npt.NDArray[np.bool_], shapes: Shapes) -> dict[int, list[Array]]:
    """Shape ops whose outputs follow from what is known of shapes, with the outputs."""
    if not shapes:
        return {}
    found = {}
    for node in map(graph.node, np.flatnonzero(may).tolist()):
        if node.op in _OF_SHAPES:
            values = [_value(node, shapes.get(e.src.name, ()), e.src_output) for e in node.input_edges()]
            known = [value for value in values if value is not None]
            if len(known) == len(values):
                found[node.id] = known
    return found


def _value(node: Node, shapes: Sequence[Shape], port: int) -> Array | None:
    """What a shape op says of a tensor; None if its shape is not known well enough or the number is too large."""
    shape = shapes[port] if port < len(shapes) else None
    if shape is None:
        return None
    dtype = numpy_dtype(node.output_types[0])
    sizes = [0 if size is None else size for size in shape]
    if node.op != "Rank" and None in shape:
        return None
    value = np.asarray(_OF_SHAPES[node.op](sizes), np.int64)
    return value.astype(dtype) if (value <= np.iinfo(dtype).max).all() else None
