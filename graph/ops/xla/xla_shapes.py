"""Shape functions of ops that name one operation of XLA each.

TensorFlow gives many of them no shape before the run; more is not told here.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidArgumentError
from ...analysis.dims import integers, shape_from
from ...analysis.shape_functions import (
    ShapeContext,
    merge,
    merge_dims,
    scalar,
    shape_fn,
    unchanged,
    unknown,
    with_rank,
)
from ...dtypes import Shape
from .blocks import Blocks
from .dimension_numbers import dot_numbers, gather_numbers

shape_fn("XlaSort", "XlaSharding", "XlaReducePrecision", "XlaDynamicUpdateSlice", "XlaScatter")(unchanged)
shape_fn("XlaBroadcastHelper", "XlaSelfAdjointEig", "XlaSvd", "XlaIf", "XlaLaunch", "XlaWhile")(unknown)
shape_fn("XlaSetBound", "XlaSetDynamicDimensionSize")(unknown)
shape_fn("XlaReplicaId")(scalar)


@shape_fn("XlaKeyValueSort", "XlaOptimizationBarrier")
def each_unchanged(c: ShapeContext) -> Sequence[Shape]:
    """Every output has the shape of its input."""
    return c.inputs


@shape_fn("XlaDynamicSlice")
def dynamic_slice(c: ShapeContext) -> Sequence[Shape]:
    """The sizes that input 2 holds."""
    sizes = integers(c, 2)
    if sizes is not None:
        return (tuple(sizes),)
    count = with_rank(c.inputs[2], 1)[0]
    if count is None and c.inputs[0] is not None:
        count = len(c.inputs[0])
    return (None if count is None else (None,) * count,)


def padded_size(size: int, low: int, high: int, interior: int) -> int:
    """The length of an axis with cells added at both ends, or dropped, and between each two.

    InvalidArgumentError if fewer than none are left.
    """
    result = size + low + high + max(size - 1, 0) * interior
    if result < 0:
        raise InvalidArgumentError(f"resulting padded dimension has negative size {result}")
    return result


@shape_fn("XlaPad")
def pad(c: ShapeContext) -> Sequence[Shape]:
    """Each axis lengthened; the value to pad with is a scalar."""
    shape, value = c.inputs[:2]
    if shape is None:
        return (None,)
    if value:
        raise InvalidArgumentError(f"padding_value input must be scalar, found rank {len(value)}")
    low, high, interior = (integers(c, i) for i in (2, 3, 4))
    if low is None or high is None or interior is None:
        return ((None,) * len(shape),)
    for widths in c.inputs[2:]:
        merge_dims(with_rank(widths, 1)[0], len(shape))
    axes = zip(shape, low, high, interior, strict=True)
    return (tuple(None if size is None else padded_size(size, *widths) for size, *widths in axes),)


@shape_fn("XlaDot", "XlaDotV2")
def dot(c: ShapeContext) -> Sequence[Shape]:
    """Batch axes, free axes of the left operand, free axes of the right one."""
    left, right = c.inputs
    if left is None or right is None:
        return (None,)
    numbers = dot_numbers(c.attrs["dimension_numbers"])
    for a, b in zip(numbers.left_contracted, numbers.right_contracted, strict=True):
        merge_dims(left[a], right[b])
    batch = [merge_dims(left[a], right[b]) for a, b in zip(numbers.left_batch, numbers.right_batch, strict=True)]
    left_free = [n for i, n in enumerate(left) if i not in numbers.left_contracted + numbers.left_batch]
    right_free = [n for i, n in enumerate(right) if i not in numbers.right_contracted + numbers.right_batch]
    return ((*batch, *left_free, *right_free),)


@shape_fn("XlaGather")
def gather(c: ShapeContext) -> Sequence[Shape]:
    """The sizes of slices at the offset axes, those of the start indices at the others."""
    operand, indices, sizes = *c.inputs[:2], integers(c, 2)
    if operand is None or None in operand or indices is None or sizes is None:
        return (None,)
    if len(sizes) != len(operand):
        raise InvalidArgumentError(
            f"Gather op must have one slice size for every input dimension; got: len(slice_sizes)={len(sizes)}, "
            f"input_shape.rank={len(operand)}."
        )
    numbers = gather_numbers(c.attrs["dimension_numbers"])
    dropped = numbers.collapsed + numbers.operand_batch
    within = iter([size for axis, size in enumerate(sizes) if axis not in dropped])
    outer = iter([size for axis, size in enumerate(indices) if axis != numbers.vector_axis])
    rank = len(sizes) - len(dropped) + len(indices) - (numbers.vector_axis < len(indices))
    return (tuple(next(within) if axis in numbers.offset else next(outer) for axis in range(rank)),)


@shape_fn("XlaSplitND")
def split_nd(c: ShapeContext) -> Sequence[Shape]:
    """The shape of a block."""
    shape, count = c.inputs[0], len(c.output_types)
    if shape is None:
        return (None,) * count
    blocks, known = Blocks.of(c.attrs, "num_splits", len(shape), count), known_sizes(shape)
    return ((None,) * len(shape) if known is None else tuple(blocks.block(known)),) * count


@shape_fn("XlaConcatND")
def concat_nd(c: ShapeContext) -> Sequence[Shape]:
    """The shape of the array that blocks of one shape make."""
    shape: Shape = None
    for other in c.inputs:
        shape = merge(shape, other)
    if shape is None:
        return (None,)
    blocks, known = Blocks.of(c.attrs, "num_concats", len(shape), len(c.inputs)), known_sizes(shape)
    return ((None,) * len(shape) if known is None else tuple(blocks.whole(known)),)


def known_sizes(shape: Sequence[int | None]) -> list[int] | None:
    """The sizes, or None if one is not known."""
    sizes = [size for size in shape if size is not None]
    return sizes if len(sizes) == len(shape) else None


@shape_fn("XlaVariadicSort")
def sort(c: ShapeContext) -> Sequence[Shape]:
    """Every output has the shape of its input; the last input is the axis."""
    return c.inputs[:-1]


@shape_fn("XlaReduce", "XlaVariadicReduce", "XlaVariadicReduceV2")
def reduce(c: ShapeContext) -> Sequence[Shape]:
    """The axes that are not reduced, of all arrays together."""
    count, axes = len(c.output_types), c.attrs["dimensions_to_reduce"]
    shape: Shape = None
    for other in c.inputs[:count]:
        shape = merge(shape, other)
    if shape is None:
        return (None,) * count
    if len({*axes}) < len(axes) or not all(0 <= axis < len(shape) for axis in axes):
        raise InvalidArgumentError(f"Invalid dimensions_to_reduce argument to {c.op}")
    return (tuple(size for axis, size in enumerate(shape) if axis not in axes),) * count


@shape_fn("XlaConv", "XlaConvV2", "XlaReduceWindow", "XlaSelectAndScatter")
def of_rank(c: ShapeContext) -> Sequence[Shape]:
    """Unknown sizes, as many as the first input has."""
    shape = c.inputs[0]
    return (None if shape is None else (None,) * len(shape),)


@shape_fn("XlaRngBitGenerator")
def rng_bit_generator(c: ShapeContext) -> Sequence[Shape]:
    """The shape of the state, and the shape that is asked for."""
    with_rank(c.inputs[0], 0)
    return with_rank(c.inputs[1], 1), shape_from(c, 2)


@shape_fn("XlaCustomCall")
def custom_call(c: ShapeContext) -> Sequence[Shape]:
    """The shape in the attr."""
    shape: Shape = c.attrs["shape"]
    return (shape,)


@shape_fn("XlaCustomCallV2")
def custom_call_of_several(c: ShapeContext) -> Sequence[Shape]:
    """The shapes in the attr."""
    shapes: Sequence[Shape] = c.attrs["result_shapes"]
    return shapes


@shape_fn("XlaSpmdShardToFullShape")
def shard_to_full_shape(c: ShapeContext) -> Sequence[Shape]:
    """The shape in the attr."""
    shape: Shape = c.attrs["full_shape"]
    return (shape,)
