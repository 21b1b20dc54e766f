"""The optimiser: the passes of a session's optimisation level, again and again until nothing changes.

Flows in: the graph of one partition. Flows out: a graph that computes the same with fewer nodes, its ids dense. Always
holds: nodes with an effect, transfers, arguments and results are all still there; at most `MAX_ROUNDS` rounds are made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..columns import SINK_ID
from ..graph import Graph
from ..invariants import are_checked
from ..protos import GraphOptions, OptimizerOptions
from .constant_folding import MAX_CONSTANT_BYTES, Evaluator, fold_constants
from .cse import merge_common_subexpressions
from .dead_nodes import remove_dead_nodes
from .foldable import Shapes
from .identities import remove_identity_nodes
from .list_converters import remove_list_converters
from .optimised_invariants import check_optimised

MAX_ROUNDS = 10


Pass = Callable[[Graph], Graph]
"""gives the very same graph when it has nothing to change"""


@dataclass(frozen=True, slots=True)
class Optimisations:
    """Which passes to run. `inlining` says that function calls were inlined, which leaves Identity nodes behind."""

    common_subexpressions: bool = True
    constant_folding: bool = True
    inlining: bool = False
    max_constant_bytes: int = MAX_CONSTANT_BYTES
    """of a folded value"""

    @property
    def any(self) -> bool:
        """Whether there is anything to do at all."""
        return self.common_subexpressions or self.constant_folding or self.inlining

    @classmethod
    def of(cls, options: GraphOptions) -> Optimisations:
        """What the options of a session ask for: level L1, the default, for both passes.

        Options without `optimizer_options` ask for none: what is partitioned and simulated is then what runs.
        """
        if not options.HasField("optimizer_options"):
            return NO_OPTIMISATIONS
        wanted = options.optimizer_options
        level = wanted.opt_level >= OptimizerOptions.L1
        return cls(
            level or wanted.do_common_subexpression_elimination,
            level or wanted.do_constant_folding,
            wanted.do_function_inlining,
            wanted.max_folded_constant_in_bytes or MAX_CONSTANT_BYTES,
        )


NO_OPTIMISATIONS = Optimisations(common_subexpressions=False, constant_folding=False)


def optimize(graph: Graph, wanted: Optimisations, evaluator: Evaluator, *, shapes: Shapes | None = None) -> Graph:
    """An optimised copy of a graph, or the very same graph if nothing can be gained.

    `evaluator` runs what is folded; `shapes` is as in `fold_constants`.
    """
    if not wanted.any:
        return graph
    passes = list(_passes(wanted, evaluator, shapes or {}))
    result = given = _without_needless_ends(graph)
    for _ in range(MAX_ROUNDS):
        before = result
        for one in passes:
            result = one(result)
        if result is before:
            break
    if result is given:
        return graph
    optimised = result.copy()
    if are_checked():
        check_optimised(optimised, graph)
    return optimised


def _passes(wanted: Optimisations, evaluator: Evaluator, shapes: Shapes) -> Iterator[Pass]:
    """The passes of a round in their order."""
    yield remove_list_converters
    if wanted.inlining:
        yield remove_dead_nodes
        yield remove_identity_nodes
    if wanted.constant_folding:
        yield partial(_folded, evaluator=evaluator, shapes=shapes, max_constant_bytes=wanted.max_constant_bytes)
    if wanted.common_subexpressions:
        yield merge_common_subexpressions


def _without_needless_ends(graph: Graph) -> Graph:
    """The graph without edges to the sink from nodes that others read: fetches leave such edges, dead nodes none."""
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
    """Constant folding, and what it leaves behind taken away."""
    folded = fold_constants(graph, evaluator, shapes=shapes, max_constant_bytes=max_constant_bytes)
    return graph if folded is graph else remove_dead_nodes(folded)
