"""Removes nodes that neither the sink nor any stateful or control flow node depends on.

Every loose end of an imported or pruned graph has an edge to the sink, so it is kept.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...columns import SINK_ID, SOURCE_ID
from ...graph import Graph
from ...ops.record import CONTROL_FLOW


def remove_dead_nodes(graph: Graph) -> Graph:
    """The graph without dead nodes, or the same object if there are none."""
    needed = _needed(graph)
    if all(needed[node] for node in graph.node_ids()):
        return graph
    result = graph.clone()
    result.keep_only(needed)
    return result


def _needed(graph: Graph) -> npt.NDArray[np.bool_]:
    """By node id, whether the node is needed by source, sink, a control flow node or a stateful node."""
    needed = graph.flags(lambda kind: kind.op_def.is_stateful or kind.op_def.record.node_class in CONTROL_FLOW)
    needed[[SOURCE_ID, SINK_ID]] = True
    waiting = np.flatnonzero(needed).tolist()
    while waiting:
        for edge in graph.in_edge_ids(waiting.pop()):
            src = graph.edge_ends(edge)[0]
            if not needed[src]:
                needed[src] = True
                waiting.append(src)
    return needed
