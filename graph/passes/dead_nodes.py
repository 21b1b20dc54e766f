"""Dead nodes: what neither the sink nor anything with an effect depends on is dropped.

Flows in: a graph. Flows out: a graph of the nodes that matter. Always holds: nodes with state and those of control flow
stay, and so does all that they depend on; a node nobody consumes stays while it hangs on the sink, as every loose end
of a graph that was imported or pruned does.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..columns import SINK_ID, SOURCE_ID
from ..graph import Graph
from ..ops.record import CONTROL_FLOW


def remove_dead_nodes(graph: Graph) -> Graph:
    """The graph without dead nodes, or the very same graph when there are none."""
    needed = _needed(graph)
    if all(needed[node] for node in graph.node_ids()):
        return graph
    result = graph.clone()
    result.keep_only(needed)
    return result


def _needed(graph: Graph) -> npt.NDArray[np.bool_]:
    """By node id, whether source, sink, a node of control flow or one with state is reached from it."""
    kinds, kind_of = graph.distinct_properties()
    matters = [kind.op_def.is_stateful or kind.op_def.record.node_class in CONTROL_FLOW for kind in kinds]
    needed = np.array([*matters, False])[kind_of]
    needed[[SOURCE_ID, SINK_ID]] = True
    waiting = np.flatnonzero(needed).tolist()
    while waiting:
        for edge in graph.in_edge_ids(waiting.pop()):
            src = graph.edge_ends(edge)[0]
            if not needed[src]:
                needed[src] = True
                waiting.append(src)
    return needed
