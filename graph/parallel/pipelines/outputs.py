"""What nodes outside read of the tensors that only micro-batches compute, besides the loss and the gradients.

accuracy = Mean(Equal(ArgMax(logits), labels))       logits have a row per row of the batch: the rows of all
                                                     micro-batches are put together, and accuracy is as before
total = Sum(activations)                             depends on a tensor without rows: the node is dropped
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ....errors import UnimplementedError
from ...columns import SINK_ID
from ...edge_ends import Output
from ...gradients.forward import DIFFERENTIABLE
from .region import Joining, MicroBatchRegion


def with_outputs(region: MicroBatchRegion, *, is_local: bool) -> MicroBatchRegion:
    """The region with what is observed from outside, and the nodes outside that cannot be computed any more.

    With `is_local` what statistics read is averaged over the micro-batches. Raises UnimplementedError for statistics
    that are lost.
    """
    read = list(read_outside(region))
    if not read:
        return region
    averaged = _sources_of_statistics(region) if is_local else set()
    observed: dict[Output, Joining] = {}
    lost = set[int]()
    for source, reader in read:
        if _has_rows(region, source):
            observed[source] = Joining.ROWS
        elif reader in averaged and region.graph.node_properties(source[0]).output_types[source[1]] in DIFFERENTIABLE:
            observed[source] = Joining.AVERAGED
        else:
            lost.add(reader)
    dropped = region.step.flow.descendants(lost) - region.nodes
    statistic = next((node for node in region.step.statistics if node in dropped), None)
    if statistic is not None:
        raise UnimplementedError(
            f"{region.name(statistic)!r} changes a variable by statistics of the batch, which micro-batches have each "
            'for itself; average them with batch_statistics="local", or give a graph without it',
            node=region.name(statistic),
        )
    return replace(region, observed=observed, dropped=frozenset(dropped))


def read_outside(region: MicroBatchRegion) -> Iterator[tuple[Output, int]]:
    """The tensors of the region that nodes outside read, with these, but for the loss and the gradients."""
    for node in (*region.forward, *region.backward):
        for edge in region.whole.out_edge_ids(node):
            _, port, reader, slot = region.whole.edge_ends(edge)
            source = node, port
            is_known = source == region.step.loss or source in region.gradients
            if slot >= 0 and reader > SINK_ID and reader not in region.nodes and not is_known:
                yield source, reader


def _sources_of_statistics(region: MicroBatchRegion) -> set[int]:
    """The nodes outside that statistics depend on, these included."""
    flow = region.step.flow
    return flow.reached(region.step.statistics, flow.value_sources) - region.nodes


def _has_rows(region: MicroBatchRegion, source: Output) -> bool:
    """Whether axis 0 of a tensor, and no other, follows the size of the batch."""
    shapes = region.step.shapes
    shape = shapes.of(source)
    if not shape or shapes.row_axes(source) != 1:
        return False
    rows = next((batch[0] for batch in shapes.batch.values() if batch and batch[0] is not None), None)
    follows = [size is None or (rows is not None and size % rows == 0) for size in shape]
    return follows[0] and not any(follows[1:])
