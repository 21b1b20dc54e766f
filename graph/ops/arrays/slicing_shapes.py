"""Shape functions of slices, concatenation, splitting and stacking.

The rank stays known where only the positions and sizes are unknown.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidArgumentError
from ...analysis.dims import integer, integers, length, partly, shape_from
from ...analysis.shape_functions import (
    ShapeContext,
    merge,
    merge_dims,
    normalize_axis,
    shape_fn,
    with_rank,
    with_rank_at_least,
    with_size,
)
from ...dtypes import Shape
from .strided import Masks, sliced_shape


@shape_fn("Slice")
def take_slice(c: ShapeContext) -> Sequence[Shape]:
    """The requested sizes; -1 stands for all elements from the beginning of the slice on."""
    (rank,) = with_rank(merge(with_rank(c.inputs[1], 1), with_rank(c.inputs[2], 1)), 1)
    if rank is None and c.inputs[0] is None:
        return (None,)
    rank = len(c.inputs[0] or ()) if rank is None else rank
    source = with_rank(c.inputs[0], rank)
    begin, sizes = partly(c, 1), partly(c, 2)
    if sizes is None:
        return ((None,) * rank,)
    result: list[int | None] = []
    for axis, (known, count) in enumerate(zip(source, sizes, strict=True)):
        first = None if begin is None else begin[axis]
        if count != -1:
            if count is not None and count < -1:
                raise InvalidArgumentError(f"Invalid value in tensor used for shape: {count}")
            result.append(count)  # checked in the run
        elif known is None or first is None:
            result.append(None)
        elif first > known:
            raise InvalidArgumentError(f"Negative dimension size caused by subtracting {first} from {known}")
        else:
            result.append(known - first)
    return (tuple(result),)


@shape_fn("StridedSlice")
def strided_slice(c: ShapeContext) -> Sequence[Shape]:
    """The shape of the slice that begin, end, strides and the masks describe."""
    strides, source = integers(c, 3), c.inputs[0]
    count: int | None = None
    for i in (1, 2, 3):
        count = merge_dims(count, length(c, i))
    if source is None or strides is None:
        return (None,)
    return (sliced_shape(source, partly(c, 1), partly(c, 2), strides, Masks.of(c.attrs)),)


@shape_fn("StridedSliceGrad")
def strided_slice_grad(c: ShapeContext) -> Sequence[Shape]:
    """The shape that was sliced."""
    return (shape_from(c, 0),)


@shape_fn("TensorStridedSliceUpdate")
def tensor_strided_slice_update(c: ShapeContext) -> Sequence[Shape]:
    """The shape of the tensor that is updated."""
    return (c.inputs[0],)


def _concatenated(values: Sequence[Shape], axis: int | None) -> Shape:
    for x in values:
        with_rank_at_least(x, 0 if axis is None else -axis if axis < 0 else axis + 1)
    rank: int | None = next((len(x) for x in values if x is not None), None)
    if rank is None:
        return None
    known = [with_rank(x, rank) for x in values]
    if rank == 0:
        raise InvalidArgumentError("Can't concatenate scalars (use tf.stack instead)")
    if axis is None:
        return (None,) * rank
    place = normalize_axis(axis, rank)
    total: int | None = 0
    around: Shape = (None,) * (rank - 1)
    for x in known:
        around = merge(around, x[:place] + x[place + 1 :])
        length = x[place]
        total = None if total is None or length is None else total + length
    other_sizes = with_rank(around, rank - 1)
    return (*other_sizes[:place], total, *other_sizes[place:])


@shape_fn("ConcatV2")
def concat_v2(c: ShapeContext) -> Sequence[Shape]:
    """The sum of the sizes along the axis; the other sizes are merged."""
    with_rank(c.inputs[-1], 0)
    return (_concatenated(c.inputs[:-1], integer(c, len(c.inputs) - 1)),)


@shape_fn("Concat")
def concat(c: ShapeContext) -> Sequence[Shape]:
    """As ConcatV2, but the axis is the first input."""
    return (_concatenated(c.inputs[1:], integer(c, 0)),)


def _with_size(shape: tuple[int | None, ...], axis: int, size: int | None) -> Shape:
    return (*shape[:axis], size, *shape[axis + 1 :])


def _split_axis(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise InvalidArgumentError(f"-input rank(-{rank}) <= split_dim < input rank ({rank}), but got {axis}")
    return axis % rank


@shape_fn("Split")
def split(c: ShapeContext) -> Sequence[Shape]:
    """`num_split` times the input's shape with one size divided."""
    count = int(c.attrs["num_split"])
    axis, source = integer(c, 0), c.inputs[1]
    if source is None or axis is None:
        return ((None,) * len(source) if source is not None else None,) * count
    axis = _split_axis(axis, len(source))
    size = source[axis]
    if size is not None and size % count:
        raise InvalidArgumentError(
            f"Number of ways to split should evenly divide the split dimension, but got split_dim {axis} "
            f"(size = {size}) and num_split {count}"
        )
    return (_with_size(source, axis, None if size is None else size // count),) * count


@shape_fn("SplitV")
def split_v(c: ShapeContext) -> Sequence[Shape]:
    """For each part the input's shape with the part's size along the axis."""
    count, source = int(c.attrs["num_split"]), c.inputs[0]
    axis, sizes = integer(c, 2), integers(c, 1)
    if axis is not None and c.inputs[2]:
        raise InvalidArgumentError(f"Input must be scalar but has rank {len(c.inputs[2])}")
    if source == ():
        raise InvalidArgumentError("Can't split scalars")
    if sizes is not None and sizes.count(-1) > 1:
        raise InvalidArgumentError("size_splits can only have one -1")
    if source is None:
        return (None,) * count
    if axis is None:
        return ((None,) * len(source),) * count
    axis = _split_axis(axis, len(source))
    if sizes is None:
        return (_with_size(source, axis, source[axis] if count == 1 else None),) * count
    whole = source[axis]
    remaining = None if whole is None else whole - sum(size for size in sizes if size != -1)
    if remaining is not None and (remaining < 0 or (remaining and -1 not in sizes)):
        raise InvalidArgumentError(
            "Determined shape must either match input shape along split_dim exactly if fully specified, or be less "
            f"than the size of the input along split_dim if not fully specified.  Got: {(whole or 0) - remaining}"
        )
    for i, size in enumerate(sizes):
        if size < -1:
            raise InvalidArgumentError(f"Split size at index {i} must be >= 0. Got: {size}")
    return tuple(_with_size(source, axis, remaining if size == -1 else size) for size in sizes)


@shape_fn("Pack")
def pack(c: ShapeContext) -> Sequence[Shape]:
    """The merged shape of all inputs, with their number as a new size."""
    known: Shape = None
    for i in reversed(range(len(c.inputs))):
        try:
            known = merge(c.inputs[i], known)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"{error.message}\n\tFrom merging shape {i} with other shapes.") from None
    if known is None:
        return (None,)
    place = normalize_axis(c.attrs["axis"], len(known) + 1)
    return ((*known[:place], len(c.inputs), *known[place:]),)


@shape_fn("Unpack")
def unpack(c: ShapeContext) -> Sequence[Shape]:
    """`num` times the input's shape without one axis."""
    count, source = int(c.attrs["num"]), with_rank_at_least(c.inputs[0], 1)
    if source is None:
        return (None,) * count
    axis = normalize_axis(c.attrs["axis"], len(source))
    with_size(source[axis], count)
    return ((*source[:axis], *source[axis + 1 :]),) * count
