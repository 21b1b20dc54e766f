"""Operations and bytes of many uses of one op, counted together: what `op_cost` says of each.

    Mul of float, (2,) * (2,), (3,) * (3,), ...      ->  (2, 24), (3, 36), ...

A step may have a hundred thousand ops of other shapes each. Most counts are sums over tensors, which need no context
for each use; a rule of which nothing is known is asked use by use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from operator import add, mul
from typing import NamedTuple

from ...errors import InvalidArgumentError
from ...graph.dtypes import Dims, item_size
from ...graph.ops.properties import NodeProperties
from . import op_cost
from .op_cost import CostContext, CountFunction, PortDims


class OpShapes(NamedTuple):
    """The shapes of one use of an op."""

    inputs: PortDims
    outputs: PortDims


OpCount = tuple[int, int]
"""the operations and bytes of one use"""


def counts_of(properties: NodeProperties, uses: Sequence[OpShapes]) -> list[OpCount | None]:
    """The counts of an op that takes time on its device, use by use; None where the shapes do not fit the op."""
    rules = op_cost.flops_rule(properties.op), op_cost.bytes_rule(properties.op)
    ports = len(properties.input_types), len(properties.output_types)
    if all(rule in _IN_COLUMNS for rule in rules) and all((len(i), len(o)) == ports for i, o in uses):
        flops, moved = (_IN_COLUMNS[rule](properties, uses) for rule in rules)
        return list(zip(flops, moved, strict=True))
    op, attrs, types = properties.op, properties.attrs, (properties.input_types, properties.output_types)
    return [_count_of(CostContext(op, attrs, *shapes, *types), *rules) for shapes in uses]


def _count_of(c: CostContext, flops: CountFunction, moved: CountFunction) -> OpCount | None:
    try:
        return op_cost.counted(flops, c), op_cost.counted(moved, c)
    except InvalidArgumentError:
        return None


_Columns = Callable[[NodeProperties, Sequence[OpShapes]], Sequence[int]]


def _elements(shapes: Sequence[PortDims]) -> list[int]:
    """The elements of all tensors of each use."""
    if shapes and len(shapes[0]) == 1:
        return [prod(dims) for (dims,) in shapes]
    return [sum(map(prod, dims)) for dims in shapes]


def _bytes(shapes: Sequence[PortDims], types: Sequence[int]) -> list[int]:
    """The bytes of all tensors of each use."""
    sizes = list(map(item_size, types))
    if len(set(sizes)) == 1:
        return [sizes[0] * count for count in _elements(shapes)]
    return [sum(map(mul, map(prod, dims), sizes)) for dims in shapes]


def _inputs(uses: Sequence[OpShapes]) -> list[PortDims]:
    return [shapes.inputs for shapes in uses]


def _outputs(uses: Sequence[OpShapes]) -> list[PortDims]:
    return [shapes.outputs for shapes in uses]


def _input_bytes(p: NodeProperties, uses: Sequence[OpShapes]) -> list[int]:
    return _bytes(_inputs(uses), p.input_types)


def _output_bytes(p: NodeProperties, uses: Sequence[OpShapes]) -> list[int]:
    return _bytes(_outputs(uses), p.output_types)


def _twice(count: _Columns) -> _Columns:
    return lambda p, uses: [2 * size for size in count(p, uses)]


def _first_elements(p: NodeProperties, uses: Sequence[OpShapes]) -> list[int]:
    first: Iterator[Dims] | None = (shapes.inputs[0] for shapes in uses) if p.input_types else None
    return [0] * len(uses) if first is None else list(map(prod, first))


_IN_COLUMNS: Mapping[CountFunction, _Columns] = {
    op_cost.no_operations: lambda _, uses: [0] * len(uses),
    op_cost.elements_written: lambda _, uses: _elements(_outputs(uses)),
    op_cost.elements_read: _first_elements,
    op_cost.tensor_bytes: lambda p, uses: list(map(add, _input_bytes(p, uses), _output_bytes(p, uses))),
    op_cost.copied_inputs: _twice(_input_bytes),
    op_cost.copied_outputs: _twice(_output_bytes),
}
"""by a rule that `op_cost` has for one use: the same for many, each with a shape for every port"""
