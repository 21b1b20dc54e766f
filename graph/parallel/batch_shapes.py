"""Which tensors have a part for every row of the batch, and the shapes of the others.

    x: (?, 4)   y = MatMul(x, w): (?, 3)     both have rows
    d_w = MatMul(x, d_y): (4, 3)             has none

Where the size of the batch is open, a tensor of which a size is unknown may have rows. A graph that was made for one
size is walked with another one, see `batch_size`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from math import lcm

from ...errors import InvalidArgumentError
from ..dtypes import Shape, Shapes
from ..edge_ends import Output
from ..graph import Graph
from ..shape_inference.infer import infer_shapes
from .value_flow import output_named

TEST = 101
"""a number of rows that no other size is likely to be a multiple of"""
COUNTS_PARTS = "_counts_parts"
"""the attr of a division by the number of parts of the batch, which does not follow the number of rows"""
_PARTS = "num_split"


def count_row_axes(shape: Shape) -> int:
    """How many axes of a shape have rows, for a batch of `TEST` rows or a multiple of them."""
    return sum(1 for size in shape or () if size and size % TEST == 0)


def parts_of_batch(graph: Graph, batch: Iterable[int]) -> int:
    """Into how many parts nodes split placeholders of the batch, as a pipeline does; a multiple of all such numbers."""
    readers = (edge.dst for node in batch for edge in graph.node(node).out_edges() if not edge.is_control)
    return lcm(*(int(reader.attrs.get(_PARTS, 1)) for reader in readers if reader.is_op))


class BatchShapes:
    """The shapes of the tensors of a graph, and which of them have rows."""

    def __init__(self, graph: Graph, batch: Sequence[str]) -> None:
        """`batch` names the placeholders of the batch.

        Raises NotFoundError for an unknown name, InvalidArgumentError for a scalar, and for shapes that contradict an
        op.
        """
        self.declared: Mapping[str, Shapes] = infer_shapes(graph)
        """the shapes for the batch that the graph declares, by node"""
        self._graph, self._names = graph, graph.names()
        self.parts = parts_of_batch(graph, [output_named(graph, name)[0] for name in batch])
        """into how many parts the graph splits its batch already"""
        self.batch: dict[str, Shape] = {name: self.of(output_named(graph, name)) for name in batch}
        """the shapes of the placeholders of the batch"""
        scalar = next((name for name, shape in self.batch.items() if shape == ()), None)
        if scalar is not None:
            raise InvalidArgumentError(f"{scalar!r} is a scalar and has no rows to split; leave it out of the batch")

    def of(self, output: Output) -> Shape:
        """The shape of an output for the batch that the graph declares."""
        return self.declared[self._names[output[0]] or ""][output[1]]

    def has_rows(self, output: Output) -> bool:
        """Whether a tensor has a part for each row, or may have one."""
        shape = self.of(output)
        return shape is None or None in shape

    @property
    def row_constants(self) -> frozenset[int]:
        """Constants with different rows, one for each of the batch, by node id."""
        return frozenset()

    def row_axes(self, output: Output) -> int:
        """Along how many axes a tensor has rows, as far as that is known."""
        return count_row_axes(self._tested[self._names[output[0]] or ""][output[1]])

    @cached_property
    def _tested(self) -> Mapping[str, Shapes]:
        rows = TEST * self.parts
        feeds = {name: None if shape is None else (rows, *shape[1:]) for name, shape in self.batch.items()}
        return infer_shapes(self._graph, feeds)

    def is_scalar(self, output: Output) -> bool:
        """Whether a tensor has one element for sure."""
        return self.of(output) == ()
