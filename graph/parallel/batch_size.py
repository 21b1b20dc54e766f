"""A training step for fewer rows: the graph that a replica runs, or a micro-batch.

    x: (8, 6)                        x: (4, 6)                        the placeholder
    Reshape(x, [8, 2, 3])            Reshape(x, [4, 2, 3])            shapes that `sized_walk` found
    RealDiv(Tile(g, [8]), 8.0)       RealDiv(Tile(g, [4]), 4.0)       the divisor of a mean, and that of its gradient

A number is the divisor of a mean if it is how many elements were added up to one right before it, or how many one was
copied to, and that number follows the batch. Graphs that leave the size of the batch open need none of this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import NamedTuple

import numpy as np

from ..dtypes import Array, DataType, Shape, base_type
from ..edge_ends import Output
from ..graph import Graph
from ..ops.properties import NodeProperties, properties_of
from ..ops.record import NodeClass
from ..tensor import numpy_to_tensor
from .batch_shapes import COUNTS_PARTS, TEST, BatchShapes, count_row_axes
from .sized_walk import InputPort, SizedWalk
from .value_flow import ValueFlow, output_named

_WHOLE = (DataType.INT32, DataType.INT64)
_HOPS = 8  # nodes between a sum and its divisor


class Divisor(NamedTuple):
    """An input with a number that follows the batch: proportional to its rows, or to their inverse."""

    value: Array
    dtype: DataType
    is_inverse: bool


class BatchSize:
    """What of a graph follows the size of the batch."""

    def __init__(self, graph: Graph, batch: Sequence[str]) -> None:
        """Raises InvalidArgumentError, by name, for what is made for one size and cannot follow another."""
        self.graph = graph
        self.shapes = BatchShapes(graph, batch)
        self._walk: SizedWalk | None = None
        self._divisors: dict[InputPort, Divisor] = {}
        fixed = {name: shape[0] for name, shape in self.shapes.batch.items() if shape and shape[0] is not None}
        if fixed:
            fed = {output_named(graph, name)[0]: rows for name, rows in fixed.items()}
            self._walk = SizedWalk(ValueFlow(graph), self.shapes.declared, fed, self.shapes.parts)
            self._walk.run()
            while self._find_divisors(self._walk):
                pass
            self.shapes = _WalkedShapes(self.shapes, self._walk)

    def part(self, parts: int) -> Graph:
        """The graph for a batch of as many times fewer rows; ids of nodes stay, new nodes come last."""
        walk, graph = self._walk, self.graph.clone()
        if walk is None or parts == 1:
            return graph
        rows = walk.rows // parts
        for node in walk.fed:
            shape = walk.before((node, 0))
            assert shape is not None
            assert shape[0] is not None
            graph.node(node).add_attr("shape", (shape[0] // parts, *shape[1:]))
        for node in walk.sliced:
            graph.set_node_properties(node, self._part_of(node, parts, 0))
        for (node, port), tested in walk.edits.items():
            _replace(graph, (node, port), _for_rows(walk, (node, port), tested, rows), None)
        for place, divisor in self._divisors.items():
            factor = parts if divisor.is_inverse else 1 / parts
            _replace(graph, place, (divisor.value * factor).astype(divisor.value.dtype), divisor.dtype)
        return graph

    def parts_of_constants(self, parts: int) -> dict[int, Callable[[int], NodeProperties]]:
        """By constant with different rows, one for each of the batch, its properties in each part."""
        found: dict[int, Callable[[int], NodeProperties]] = {}
        for node, axis in self._walk.sliced.items() if self._walk is not None else ():
            if not _is_even(self.graph, node, axis):
                found[node] = partial(self._part_of, node, parts)
        return found

    def _part_of(self, node: int, parts: int, number: int) -> NodeProperties:
        assert self._walk is not None
        kind, axis = self.graph.node_properties(node), self._walk.sliced[node]
        value = np.asarray(kind.attrs["value"])
        count = value.shape[axis] // parts
        return _constant(np.take(value, range(number * count, (number + 1) * count), axis), kind.output_types[0])

    def _find_divisors(self, walk: SizedWalk) -> bool:
        """Notes the divisors of means; whether one was a count of rows, which follow the batch from now on.

        Raises InvalidArgumentError for a divisor that is computed from constants in another way.
        """
        flow = walk.flow
        for node in flow.order:
            kind = walk.kinds[node]
            if kind is None or not kind.op_def.record.in_place or len(flow.sources[node]) != 2:
                continue
            if COUNTS_PARTS in kind.attrs:
                continue
            for port, other in ((1, 0), (0, 1)):
                ratio = _ratio(walk, flow.sources[node][other])
                if ratio is None:
                    continue
                value = _number(walk, flow.sources[node][port])
                if value is None:
                    rows = _counted_rows(walk, flow.sources[node][port], ratio)
                    if rows is not None:
                        walk.follow(*rows)
                        return True
                    continue
                dtype = kind.input_types[port]
                for is_inverse, wanted in ((False, ratio), (True, 1 / ratio)):
                    if abs(float(value) - wanted) <= 1e-3 * wanted:
                        self._divisors[node, port] = Divisor(value, DataType(dtype), is_inverse)
        return False


class _WalkedShapes(BatchShapes):
    """Shapes of a graph that was made for a batch of one size."""

    def __init__(self, plain: BatchShapes, walk: SizedWalk) -> None:
        self.__dict__.update(plain.__dict__)
        self._walk = walk

    def has_rows(self, output: Output) -> bool:
        """Whether a tensor has a part for each row, or may have one."""
        if output[0] >= len(self._walk.fact_of):
            return False
        shape = self.of(output)
        return shape is None or None in shape or shape != self._walk.shape(output)

    @property
    def row_constants(self) -> frozenset[int]:
        """Constants with different rows, one for each of the batch, by node id."""
        walk = self._walk
        return frozenset(node for node, axis in walk.sliced.items() if not _is_even(walk.flow.graph, node, axis))

    def row_axes(self, output: Output) -> int:
        """Along how many axes a tensor has rows, as far as that is known."""
        return count_row_axes(self._walk.shape(output)) if output[0] < len(self._walk.fact_of) else 0


def _is_even(graph: Graph, node: int, axis: int) -> bool:
    """Whether all rows of a constant along an axis are alike."""
    value = np.asarray(graph.node_properties(node).attrs["value"])
    return bool((value == np.take(value, [0], axis)).all())


def _number(walk: SizedWalk, source: Output) -> Array | None:
    """The value of a scalar constant, or of one that was cast."""
    node = source[0]
    for _ in range(2):
        kind = walk.kinds[node]
        if kind is None:
            return None
        if kind.op_def.record.node_class is NodeClass.CONSTANT:
            value = np.asarray(kind.attrs["value"])
            return value if not value.ndim and value.dtype.kind in "fiV" and value.dtype != object else None
        if not kind.op_def.record.in_place or len(walk.flow.sources[node]) != 1:
            return None
        node = walk.flow.sources[node][0][0]
    return None


def _ratio(walk: SizedWalk, source: Output) -> float | None:
    """How many elements were added to one, or one was copied to, in the last step that changed their number.

    None unless that number follows the batch.
    """
    node, port = source
    for _ in range(_HOPS):
        sources = walk.flow.sources[node]
        if not sources or port:
            return None
        before, after = _sizes(walk, sources[0]), _sizes(walk, (node, port))
        if before is None or after is None or 0 in (*before, *after):
            return None
        if before != after:
            kind = walk.kinds[node]
            if kind is None or kind.op_def.record.merges_by not in ("", "Add") or _num_values(walk, node) != 1:
                return None  # a mean has been divided already, and a product adds up other things
            high, low = (before, after) if before[0] > after[0] else (after, before)
            ratio = high[0] / low[0]
            return ratio if (high[1] / low[1]) * walk.rows == ratio * TEST else None
        if _num_values(walk, node) != 1:
            return None  # a step towards a gradient is none of its size
        node, port = sources[0]
    return None


def _num_values(walk: SizedWalk, node: int) -> int:
    """How many inputs of a node are neither constants nor whole numbers, such as sizes."""
    kind, count = walk.kinds[node], 0
    for port, (source, _) in enumerate(walk.flow.sources[node]):
        other = walk.kinds[source]
        is_constant = other is None or other.op_def.record.node_class is NodeClass.CONSTANT
        count += not is_constant and kind is not None and base_type(kind.input_types[port]) not in _WHOLE
    return count


def _counted_rows(walk: SizedWalk, source: Output, ratio: float) -> tuple[Output, int] | None:
    """The tensor, and its axis, whose elements a scalar adds up, if it has `ratio` of them and is not of the batch yet.

    So a mean over what is present divides by Sum(Fill([8], 1.0)).
    """
    node, port = source
    for _ in range(_HOPS):
        sources = walk.flow.sources[node]
        if not sources or port:
            return None
        sizes = [(_sizes(walk, source), source) for source in sources]
        after = _sizes(walk, (node, port))
        if after is None or after[0] != after[1] or walk.flow.variable(node) is not None:
            return None
        for before, counted in sizes:
            if before is not None and before[0] == before[1] == ratio * after[0]:
                shape = walk.before(counted) or ()
                axis = next((k for k, size in enumerate(shape) if size and size % walk.rows == 0), None)
                return None if axis is None or not _is_fixed(walk, counted[0]) else (counted, axis)
        same = [source for before, source in sizes if before == after]
        if not same:
            return None
        node, port = same[0]
    return None


def _is_fixed(walk: SizedWalk, node: int) -> bool:
    """Whether a value follows from constants alone."""
    before = walk.flow.reached([node], walk.flow.value_sources)
    records = [kind.op_def.record for n in before if (kind := walk.kinds[n]) is not None]
    return not any(record.is_placeholder or record.state is not None for record in records)


def _sizes(walk: SizedWalk, output: Output) -> tuple[int, int] | None:
    """The number of elements for the batch that the graph was made for, and for `TEST` rows."""
    before, tested = walk.before(output), walk.shape(output)
    if before is None or tested is None or None in before or None in tested:
        return None
    return _product(before), _product(tested)


def _product(shape: Shape) -> int:
    return prod(size for size in shape or () if size is not None)


def _for_rows(walk: SizedWalk, place: InputPort, tested: Array, rows: int) -> Array:
    """The value of an input for a number of rows, from that for `TEST` rows."""
    before = walk.facts.values[_fact(walk, place)]
    assert before is not None
    moved = before + (tested.astype(np.int64) - before) * (rows - walk.rows) // (TEST - walk.rows)
    return moved.astype(before.dtype)


def _fact(walk: SizedWalk, place: InputPort) -> int:
    source, output = walk.flow.sources[place[0]][place[1]]
    return walk.fact_of[source][output]


def _constant(value: Array, dtype: int) -> NodeProperties:
    return properties_of("Const", {"value": numpy_to_tensor(value, DataType(dtype)), "dtype": DataType(dtype)})


def _replace(graph: Graph, place: InputPort, value: Array, dtype: DataType | None) -> None:
    """Makes an input read a new constant."""
    node, port = graph.node(place[0]), place[1]
    kind = node.properties.input_types[port] if dtype is None else dtype
    name = f"{node.name}/rows_{port}"
    while graph.find_node(name) is not None:
        name += "_"
    tensor = numpy_to_tensor(np.asarray(value), DataType(kind))
    constant = graph.add_node(name, "Const", {"value": tensor, "dtype": DataType(kind)}, device=node.requested_device)
    for edge in node.input_edge(port).src.in_edges():
        if edge.is_control and edge.src.is_op:
            graph.add_control_edge(edge.src, constant)
    graph.update_edge(constant, 0, node, port)
