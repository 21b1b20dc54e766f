"""Which nodes of a graph have the same value in every step: constants, and nodes that depend on nothing else.

Never foldable are stateful, control flow, transfer, session handle and function call nodes, and nodes without a kernel.
Control inputs do not make a node unfoldable; the constant that replaces it waits for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...columns import CONTROL_SLOT, SINK_ID, SOURCE_ID
from ...dtypes import Array, Shape, numpy_dtype
from ...graph import Graph
from ...node import Node
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
        consider: Callable[[Node], bool] | None,
    ) -> None:
        """`consider` may exclude nodes; a shape op of tensors with known `shapes` is foldable whatever it reads."""
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


def _flags(
    kinds: Sequence[NodeProperties], kind_of: npt.NDArray[np.int64], holds: Callable[[NodeProperties], bool]
) -> npt.NDArray[np.bool_]:
    """By node id whether `holds` is true of the node's kind; False for removed nodes."""
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


def _values_of_shapes(graph: Graph, may: npt.NDArray[np.bool_], shapes: ShapesByNode) -> dict[int, list[Array]]:
    """Shape ops whose outputs follow from known shapes, with these outputs."""
    if not shapes:
        return {}
    of_shapes = {}
    for node in map(graph.node, np.flatnonzero(may).tolist()):
        if node.op in _OF_SHAPES:
            values = [_value(node, shapes.get(e.src.name, ()), e.src_output) for e in node.input_edges()]
            known = [value for value in values if value is not None]
            if len(known) == len(values):
                of_shapes[node.id] = known
    return of_shapes


def _value(node: Node, shapes: Sequence[Shape], port: int) -> Array | None:
    """The output of a shape op for a tensor; None if its shape is not known well enough or the number is too large."""
    shape = shapes[port] if port < len(shapes) else None
    if shape is None:
        return None
    dtype = numpy_dtype(node.output_types[0])
    sizes = [0 if size is None else size for size in shape]
    if node.op != "Rank" and None in shape:
        return None
    value = np.asarray(_OF_SHAPES[node.op](sizes), np.int64)
    return value.astype(dtype) if (value <= np.iinfo(dtype).max).all() else None
