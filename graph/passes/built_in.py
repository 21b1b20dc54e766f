"""The passes that Partita has itself, by name."""

from __future__ import annotations

from ..graph import Graph
from . import optimising
from .lower_functional import lower_functional
from .names import COMMON, CONVERTERS, DEAD, FOLD, IDENTITIES, INLINE, SUMMARIES
from .registry import GraphContext, GraphPass, PartitionContext, PartitionPass, Pass


def _inlined(graph: Graph, context: GraphContext) -> Graph:
    return lower_functional(graph, inline_calls=True, control_flow=context.lowers_control_flow)


def _folded(graph: Graph, context: PartitionContext) -> Graph:
    """Constant folding, followed by the removal of nodes that lost their consumers."""
    folded = optimising.fold_constants(
        graph, context.evaluator, shapes=context.shapes, max_constant_bytes=context.max_constant_bytes
    )
    return graph if folded is graph else optimising.remove_dead_nodes(folded)


PASSES: dict[str, Pass] = {
    found.name: found
    for found in (
        GraphPass(INLINE, SUMMARIES[INLINE], _inlined),
        PartitionPass(CONVERTERS, SUMMARIES[CONVERTERS], lambda graph, _: optimising.remove_list_converters(graph)),
        PartitionPass(DEAD, SUMMARIES[DEAD], lambda graph, _: optimising.remove_dead_nodes(graph)),
        PartitionPass(IDENTITIES, SUMMARIES[IDENTITIES], lambda graph, _: optimising.remove_identity_nodes(graph)),
        PartitionPass(FOLD, SUMMARIES[FOLD], _folded),
        PartitionPass(COMMON, SUMMARIES[COMMON], lambda graph, _: optimising.merge_common_subexpressions(graph)),
    )
}
