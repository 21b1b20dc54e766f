"""Rules for sizes that array shape functions and array kernels share, so that both agree.

They take shapes (possibly partly known), the integers of shape-valued tensors, and attrs. Fully known shapes give a
fully known result. The errors are TensorFlow's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import prod
from typing import Any

from ...errors import InvalidArgumentError
from ..dtypes import Array, Shape
from .shape_functions import ShapeContext, shape_text as shape_text, with_rank


def fits(shape: Sequence[int], expected: Shape) -> bool:
    """Whether a tensor of that shape matches a partly known shape."""
    return expected is None or (
        len(shape) == len(expected) and all(b in (None, a) for a, b in zip(shape, expected, strict=True))
    )


def common_shape(shapes: Sequence[Shape]) -> Shape:
    """The shape that all of `shapes` match: sizes where all agree, unknown elsewhere."""
    first = shapes[0]
    if first is None or any(shape is None or len(shape) != len(first) for shape in shapes):
        return None
    return tuple(
        size if all(shape is not None and shape[i] == size for shape in shapes) else None
        for i, size in enumerate(first)
    )


def integers(c: ShapeContext, index: int) -> list[int] | None:
    """The values of an integer vector (or scalar) input in order, None if they are not known before the run."""
    value = c.constant(index)
    return None if value is None else [int(size) for size in value.reshape(-1).tolist()]


def partly(c: ShapeContext, index: int) -> list[int | None] | None:
    """As `integers`, with None for single unknown values; None if no value is known."""
    known = c.partials.get(index)
    if known is not None:
        return list(known)
    return list(integers(c, index) or ()) if c.constant(index) is not None else None


def integer(c: ShapeContext, index: int) -> int | None:
    """The value of an integer input of one element, None if it is not known before the run."""
    values = integers(c, index)
    return values[0] if values else None


def size_from(c: ShapeContext, index: int) -> int | None:
    """The size given by a scalar input, None if it is unknown; InvalidArgumentError for a negative one."""
    size = integer(c, index)
    if c.constant(index) is not None and c.inputs[index]:
        raise InvalidArgumentError(f"Input must be scalar but has rank {len(c.inputs[index] or ())}")
    if size is not None and size < 0:
        raise InvalidArgumentError(f"Dimension size, given by scalar input {index}, must be non-negative but is {size}")
    return size


def length(c: ShapeContext, index: int) -> int | None:
    """The number of elements of a vector input, None if it is unknown."""
    return with_rank(c.inputs[index], 1)[0]


def shape_from(c: ShapeContext, index: int) -> Shape:
    """The shape given by a shape-valued input; -1 in it, or an unknown value, is an unknown size.

    A scalar -1 is a shape of unknown rank. If the values are unknown, the length of the input still gives the rank.
    """
    values = partly(c, index)
    if values == [-1] and c.inputs[index] == ():
        return None
    value_shape = c.inputs[index]
    if value_shape is not None and len(value_shape) > 1:
        raise InvalidArgumentError(f"Shape must be rank 1 but is rank {len(value_shape)}")
    if values is not None:
        for size in values:
            if size is not None and size < -1:
                raise InvalidArgumentError(f"Invalid value in tensor used for shape: {size}")
        return tuple(None if size == -1 else size for size in values)
    count = length(c, index)
    return None if count is None else (None,) * count


def ranked_shape_from(c: ShapeContext, index: int, rank: int) -> tuple[int | None, ...]:
    """As `shape_from`, of that rank: sizes are unknown where the value is; InvalidArgumentError for another rank."""
    return with_rank(shape_from(c, index), rank)


def reshaped(shape: Sequence[int], sizes: Sequence[int]) -> tuple[int, ...]:
    """The sizes that Reshape gives a tensor of that shape; one -1 among `sizes` is inferred.

    If `sizes` has a zero, the -1 is inferred from the non-zero sizes, as in TensorFlow.
    """
    elements = prod(shape)
    unknown = [i for i, size in enumerate(sizes) if size == -1]
    if len(unknown) > 1:
        raise InvalidArgumentError(f"Only one input size may be -1, not both {unknown[0]} and {unknown[1]}")
    for i, size in enumerate(sizes):
        if size < -1:
            raise InvalidArgumentError(f"Size {i} must be non-negative, not {size}")
    known = prod(size for size in sizes if size != -1)
    if elements != known and not (unknown and known):
        raise _wrong_count(elements, f"has {known}")
    if unknown and known and elements % known:
        raise _wrong_count(elements, f"requires a multiple of {known}")
    if not unknown:
        return tuple(sizes)
    if known:
        inferred = elements // known
    else:
        inferred = prod(size for size in shape if size) // prod(size for size in sizes if size > 0)
    return tuple(inferred if size == -1 else size for size in sizes)


def _wrong_count(elements: int, what: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"Input to reshape is a tensor with {elements} values, but the requested shape {what}")


def squeezed(shape: tuple[int | None, ...], axes: Sequence[int]) -> Shape:
    """`shape` without the sizes of one at `axes`, or without all of them if `axes` is empty.

    The result has unknown rank if `axes` is empty and some size is unknown, because that size may be one.
    """
    rank = len(shape)
    for axis in axes:
        if not -rank <= axis < rank:
            raise InvalidArgumentError(f"Tried to squeeze dim index {axis} for tensor with {rank} dimensions.")
    if not axes:
        return None if None in shape else tuple(size for size in shape if size != 1)
    dropped = {axis % rank for axis in axes}
    for axis in sorted(dropped):
        if shape[axis] not in (1, None):
            raise InvalidArgumentError(f"Can not squeeze dim[{axis}], expected a dimension of 1, got {shape[axis]}")
    return tuple(size for i, size in enumerate(shape) if i not in dropped)


def expanded(shape: tuple[int | None, ...], axis: int) -> tuple[int | None, ...]:
    """`shape` with a size of one inserted before `axis` (-1: at the end)."""
    rank = len(shape)
    if not -rank - 1 <= axis <= rank:
        raise InvalidArgumentError(f"Tried to expand dim index {axis} for tensor with {rank} dimensions.")
    place = axis + rank + 1 if axis < 0 else axis
    return (*shape[:place], 1, *shape[place:])


# The three inputs of a Range: Python integers, or numpy floats of one type, in which the result is computed.
RangeNumber = Any


def range_value(value: Array) -> RangeNumber:
    """The element of a Range input, in the form that `range_length` takes."""
    element = value.reshape(-1)[0]
    return int(element) if value.dtype.kind in "iu" else element


def range_length(start: RangeNumber, limit: RangeNumber, delta: RangeNumber) -> int:
    """How many steps of `delta` fit from `start` to before `limit`; exact for integers of any size."""
    zero = type(delta)(0)  # bfloat16 compares with its own kind only
    if delta == zero:
        raise InvalidArgumentError("Requires delta != 0: 0")
    if delta > zero and start > limit:
        raise InvalidArgumentError(f"Requires start <= limit when delta > 0: {_plain(start)}/{_plain(limit)}")
    if delta < zero and start < limit:
        raise InvalidArgumentError(f"Requires start >= limit when delta < 0: {_plain(start)}/{_plain(limit)}")
    if isinstance(delta, int):
        return int(-((start - limit) // delta))
    steps = float(abs((limit - start) / delta))
    if not steps < 2**63:
        raise InvalidArgumentError(f"Requires ((limit - start) / delta) <= {2**63 - 1}")
    return math.ceil(steps)


def _plain(value: RangeNumber) -> str:
    return str(value) if isinstance(value, int) else f"{float(value):g}"
