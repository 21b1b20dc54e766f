"""Gradients of a variable that several stages read: each stage adds up its own, and then they are summed once.

d_w = AddN(d_w of stage 0, d_w of stage 3)     in the region: stage 3 would send its part for every micro-batch
                                               outside: the parts are gradients, and d_w is the sum of their means
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from .region import Joining, MicroBatchRegion


def without_sums(region: MicroBatchRegion, stage_of: Mapping[int, int]) -> MicroBatchRegion:
    """The region without sums of gradients from different stages, whose summands are gradients now."""
    gradients, outside = dict(region.gradients), set[int]()
    for node in reversed(region.backward):
        if not _is_sum(region, node, gradients.get((node, 0)), outside):
            continue
        summands = [source for source in region.sources(node) if source[0] in region.nodes]
        stages = {stage_of[source] for source, _ in summands}
        if len(summands) < len(region.sources(node)) or (len(stages) < 2 and not _leads_to_sum(region, node, stage_of)):
            continue
        outside.add(node)
        del gradients[node, 0]
        gradients |= dict.fromkeys(summands, Joining.SUMMED)
    backward = tuple(node for node in region.backward if node not in outside)
    return replace(region, backward=backward, gradients=gradients) if outside else region


def _is_sum(region: MicroBatchRegion, node: int, joining: Joining | None, outside: set[int]) -> bool:
    """Whether a node only adds, what it adds up is a gradient, and nobody inside reads it."""
    is_additive = region.graph.node_properties(node).op_def.record.is_additive
    if not is_additive or joining is not Joining.SUMMED:
        return False
    return not any(reader in region.nodes and reader not in outside for reader in region.readers(node))


def _leads_to_sum(region: MicroBatchRegion, node: int, stage_of: Mapping[int, int]) -> bool:
    """Whether a node passes on a sum of gradients from different stages."""
    sources = region.sources(node)
    if len(sources) != 1 or region.readers(sources[0][0]) != [node]:
        return False
    source = sources[0][0]
    if source not in region.nodes or not region.graph.node_properties(source).op_def.record.is_additive:
        return False
    return len({stage_of[n] for n, _ in region.sources(source) if n in stage_of}) > 1 or _leads_to_sum(
        region, source, stage_of
    )
