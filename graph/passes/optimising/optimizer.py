"""The optimiser: runs passes on a partition until nothing changes.

At most `MAX_ROUNDS` rounds are run. Stateful nodes, transfers, arguments and results stay; the ids of the result are
dense.
"""

from __future__ import annotations

import numpy as np

from ...checking import are_checked
from ...columns import SINK_ID
from ...graph import Graph
from ..built_in import PASSES
from ..registry import PartitionContext, partition_passes
from ..selection import Passes
from .constant_folding import Evaluator
from .foldable import ShapesByNode

MAX_ROUNDS = 10


def optimize(graph: Graph, wanted: Passes, evaluator: Evaluator, *, shapes: ShapesByNode | None = None) -> Graph:
    """A copy of a graph after the passes over partitions among those wanted; the same object if nothing changes.

    `evaluator` computes folded values; `shapes` is as in `fold_constants`. Raises as `find_pass`.
    """
    passes = partition_passes(wanted.names)
    if not passes:
        return graph
    context = PartitionContext(evaluator, wanted.max_constant_bytes, shapes or {})
    result = original = _without_needless_ends(graph)
    for _ in range(MAX_ROUNDS):
        before = result
        for each in passes:
            result = each.run(result, context)
        if result is before:
            break
    if result is original:
        return graph
    optimised = result.copy()
    if are_checked() and all(each.name in PASSES for each in passes):
        from .optimised_invariants import check_optimised

        check_optimised(optimised, graph)
    return optimised


def _without_needless_ends(graph: Graph) -> Graph:
    """The graph without sink edges of nodes that have consumers: such edges, left by fetches, keep dead nodes."""
    edges = graph.edge_arrays()
    is_end = edges.dst == SINK_ID
    is_read = np.bincount(edges.src[~is_end], minlength=graph.num_node_ids) > 0
    needless = edges.id[is_end & is_read[edges.src]].tolist()
    if not needless:
        return graph
    result = graph.clone()
    for edge in needless:
        result.remove_edge(result.edge(edge))
    return result
