"""What nodes outside read of the tensors that only micro-batches compute, besides the loss and the gradients.

    accuracy = Mean(Equal(ArgMax(logits), labels))       logits have a row per row of the batch: the rows of all
                                                         micro-batches are put together, and accuracy is as before
    total = Sum(activations)                             depends on a tensor without rows: the node is dropped

Whether a tensor has rows is found by inferring shapes with batches of two sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ....errors import PartitaError, UnimplementedError
from ...columns import SINK_ID
from ...dtypes import Shape, Shapes
from ...edge_ends import Output
from ...gradients.forward import DIFFERENTIABLE
from ...shape_inference.infer import infer_shapes
from .region import Joining, MicroBatchRegion

_ROWS = (24, 48)  # sizes of batches that are tried, times the number of micro-batches


def with_outputs(region: MicroBatchRegion, microbatches: int, *, is_local: bool) -> MicroBatchRegion:
    """The region with what is observed from outside, and the nodes outside that cannot be computed any more.

    With `is_local` what statistics read is averaged over the micro-batches. Raises UnimplementedError for statistics
    that are lost.
    """
    read = list(_read_outside(region))
    if not read:
        return region
    rows = _Rows(region, microbatches)
    averaged = _sources_of_statistics(region) if is_local else set()
    observed: dict[Output, Joining] = {}
    lost = set[int]()
    for source, reader in read:
        if rows.has(source):
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


def _read_outside(region: MicroBatchRegion) -> Iterator[tuple[Output, int]]:
    """The tensors of the region that nodes outside read, with these, but for the loss and the gradients."""
    for node in (*region.forward, *region.backward):
        for edge in region.graph.out_edge_ids(node):
            _, port, reader, slot = region.graph.edge_ends(edge)
            source = node, port
            is_known = source == region.step.loss or source in region.gradients
            if slot >= 0 and reader > SINK_ID and reader not in region.nodes and not is_known:
                yield source, reader


def _sources_of_statistics(region: MicroBatchRegion) -> set[int]:
    """The nodes outside that statistics depend on, these included."""
    flow = region.step.flow
    return flow.reached(region.step.statistics, flow.value_sources) - region.nodes


class _Rows:
    """Which tensors have axis 0 as long as that of the batch, whatever its size is."""

    def __init__(self, region: MicroBatchRegion, microbatches: int) -> None:
        self.names = region.graph.names()
        self.sizes = [size * microbatches for size in _ROWS]
        self.shapes = [_inferred(region, size) for size in self.sizes]

    def has(self, source: Output) -> bool:
        """Whether a tensor has a row, or several, per row of the batch, and nothing else of its shape is unknown."""
        small, large = (self._shape(shapes, source) for shapes in self.shapes)
        if not small or not large or None in small or small[1:] != large[1:]:
            return False
        fewer, more = small[0] or 0, large[0] or 0
        return fewer * self.sizes[1] == more * self.sizes[0] and fewer % self.sizes[0] == 0

    def _shape(self, shapes: Mapping[str, Shapes], source: Output) -> Shape:
        found = shapes.get(self.names[source[0]] or "", ())
        return found[source[1]] if source[1] < len(found) else None


def _inferred(region: MicroBatchRegion, size: int) -> Mapping[str, Shapes]:
    """The shapes of all tensors with a batch of that size; none if the graph is for another size."""
    feeds: dict[str, Shape] = {}
    for node in region.batch:
        shape = region.step.shapes.of((node, 0))
        if shape is not None:
            feeds[f"{region.name(node)}:0"] = (size, *shape[1:])
    try:
        return infer_shapes(region.graph, feeds)
    except PartitaError:
        return {}
