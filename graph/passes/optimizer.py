"""The optimiser: runs the passes of a session's optimisation level on a partition until nothing changes.

At most `MAX_ROUNDS` rounds are run. Stateful nodes, transfers, arguments and results stay; the ids of the result are
dense.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from ..checking import are_checked
from ..columns import SINK_ID
from ..graph import Graph
from .constant_folding import Evaluator, fold_constants
from .cse import merge_common_subexpressions
from .dead_nodes import remove_dead_nodes
from .foldable import Shapes
from .identities import remove_identity_nodes
from .list_converters import remove_list_converters
from .optimisations import Optimisations

MAX_ROUNDS = 10


Pass = Callable[[Graph], Graph]
"""returns the same object if there is nothing to change"""


def optimize(graph: Graph, wanted: Optimisations, evaluator: Evaluator, *, shapes: Shapes | None = None) -> Graph:
    """An optimised copy of a graph, or the same object if nothing changes.

    `evaluator` computes folded values; `shapes` is as in `fold_constants`.
    """
    if not wanted.any:
        return graph
    passes = list(_passes(wanted, evaluator, shapes or {}))
    result = original = _without_needless_ends(graph)
    for _ in range(MAX_ROUNDS):
        before = result
        for optimise in passes:
            result = optimise(result)
        if result is before:
            break
    if result is original:
        return graph
    optimised = result.copy()
    if are_checked():
        from .optimised_invariants import check_optimised

        check_optimised(optimised, graph)
    return optimised


def _passes(wanted: Optimisations, evaluator: Evaluator, shapes: Shapes) -> Iterator[Pass]:
    """The passes of a round in order."""
    yield remove_list_converters
    if wanted.inlining:
        yield remove_dead_nodes
        yield remove_identity_nodes
    if wanted.constant_folding:
        yield partial(_folded, evaluator=evaluator, shapes=shapes, max_constant_bytes=wanted.max_constant_bytes)
    if wanted.common_subexpressions:
        yield merge_common_subexpressions


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


def _folded(graph: Graph, *, evaluator: Evaluator, shapes: Shapes, max_constant_bytes: int) -> Graph:
    """Constant folding, followed by the removal of nodes that lost their consumers."""
    folded = fold_constants(graph, evaluator, shapes=shapes, max_constant_bytes=max_constant_bytes)
    return graph if folded is graph else remove_dead_nodes(folded)
