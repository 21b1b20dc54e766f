"""Which tensors have a part for every row of the batch, and the shapes of the others.

Shapes are inferred with a batch of unknown size: a tensor of which a size is unknown then has rows.

    x: (?, 4)   y = MatMul(x, w): (?, 3)     both have rows
    d_w = MatMul(x, d_y): (4, 3)             has none
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...errors import InvalidArgumentError
from ..dtypes import Shape, Shapes
from ..edge_ends import Output
from ..graph import Graph
from ..shape_inference.infer import infer_shapes


class BatchShapes:
    """The shapes of the tensors of a graph, and which of them have rows."""

    def __init__(self, graph: Graph, batch: Sequence[str]) -> None:
        """`batch` names the placeholders of the batch; InvalidArgumentError for one whose axis 0 cannot be split."""
        declared = infer_shapes(graph)
        self.batch: dict[str, Shape] = {}
        opened = graph.clone()
        for name in batch:
            shape = declared[name.partition(":")[0]][0]
            if shape == ():
                raise InvalidArgumentError(f"{name!r} is a scalar and has no rows to split; leave it out of the batch")
            self.batch[name] = shape
            if shape is not None and shape[0] is not None:
                node = opened.find_node(name.partition(":")[0])
                assert node is not None
                node.add_attr("shape", (None, *shape[1:]))
        self._names = graph.names()
        self._shapes: Mapping[str, Shapes] = declared
        self._open: Mapping[str, Shapes] = infer_shapes(opened)

    def of(self, output: Output) -> Shape:
        """The shape of an output for the batch that the graph declares."""
        return self._of(self._shapes, output)

    def has_rows(self, output: Output) -> bool:
        """Whether a tensor has a part for each row, or may have one."""
        shape = self.of(output)
        return shape is None or None in shape or shape != self._of(self._open, output)

    def is_scalar(self, output: Output) -> bool:
        """Whether a tensor has one element for sure."""
        return self.of(output) == ()

    def _of(self, shapes: Mapping[str, Shapes], output: Output) -> Shape:
        return shapes[self._names[output[0]] or ""][output[1]]
