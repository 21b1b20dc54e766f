"""Kernels that cut arrays and join them: slices, splits, concatenation, stacking.

The results of ops that only select are views; errors have TensorFlow's words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import accumulate
from typing import Any

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, numpy_dtype
from ....graph.ops.arrays.strided import IndexEntry, Masks, numpy_index, sliced_shape
from ..checks import require
from ..output_size import output_shape
from ..registry import Construction, Kernel, kernel, outputs, simple
from .indices import sizes_of
from .latest import keeping_results


def take_slice(x: Array, begin: Array, size: Array) -> Array:
    """`size` elements from `begin` on along each axis; a size of -1 goes to the end."""
    starts, sizes = begin.tolist(), size.tolist()
    if begin.ndim != 1 or size.ndim != 1 or not len(starts) == len(sizes) == x.ndim:
        raise InvalidArgumentError(
            f"Expected begin and size arguments to be 1-D tensors of size {x.ndim}, but got shapes "
            f"{shape_text(begin.shape)} and {shape_text(size.shape)} instead."
        )
    result: Array = x[slice_index(starts, sizes, x.shape)]
    return result


def slice_index(starts: list[int], sizes: list[int], shape: tuple[int, ...]) -> tuple[IndexEntry, ...]:
    """The numpy index of a Slice; InvalidArgumentError where it leaves a tensor of that shape."""
    index: list[IndexEntry] = [Ellipsis]
    for axis, (first, count, length) in enumerate(zip(starts, sizes, shape, strict=True)):
        size_taken = length - first if count == -1 else count
        if not 0 <= first <= length:
            raise InvalidArgumentError(f"Expected begin[{axis}] in [0, {length}], but got {first}")
        if not 0 <= size_taken <= length - first:
            raise InvalidArgumentError(f"Expected size[{axis}] in [0, {length - first}], but got {size_taken}")
        index.append(slice(first, first + size_taken))
    return tuple(index)


simple("Slice", take_slice)


Locate = Callable[[tuple[int, ...], Array, Array, Array], tuple[IndexEntry, ...]]


def locator(masks: Masks) -> Locate:
    """Makes numpy indices of slices; they end with an ellipsis, so that the result of a scalar is an array too."""

    def index_of(shape: tuple[int, ...], begin: Array, end: Array, strides: Array) -> tuple[IndexEntry, ...]:
        for x in (begin, end, strides):
            if x.ndim != 1:
                raise InvalidArgumentError(
                    "Expected begin, end, and strides to be 1D equal size tensors, but got shapes "
                    f"{shape_text(begin.shape)}, {shape_text(end.shape)}, and {shape_text(strides.shape)} instead."
                )
        bounds = begin.tolist(), end.tolist(), strides.tolist()
        sliced_shape(shape, *bounds, masks)
        index = numpy_index(*bounds, masks)
        return tuple(index) if any(entry is Ellipsis for entry in index) else (*index, Ellipsis)

    return index_of


@kernel("StridedSlice")
def strided_slice(node: Construction) -> Kernel:
    """The part of the input that begin, end, strides and the masks describe, as a view."""
    masks = Masks.of(node.attrs)
    locate = locator(masks)
    if numpy_dtype(node.output_types[0]).kind == "O":
        return lambda x, begin, end, strides: x[locate(x.shape, begin, end, strides)]
    drop_one = masks.shrink == 1 and not masks.ellipsis & 1 and not masks.new_axis & 1

    @keeping_results
    def index_of(begin: Array, end: Array, strides: Array) -> tuple[IndexEntry, ...]:
        return tuple(numpy_index(begin.tolist(), end.tolist(), strides.tolist(), masks))

    def run(x: Array, begin: Array, end: Array, strides: Array) -> Any:  # an array, or a scalar of any type
        try:
            if drop_one and begin.size == 1:  # x[i], by far the most frequent slice
                if strides.item() > 0 and end.size == 1:
                    return x[begin.item()]
            else:
                return x[index_of(begin, end, strides)]
        except (IndexError, ValueError, TypeError):
            pass  # the except clause below gives numpy's error TensorFlow's words
        return x[locate(x.shape, begin, end, strides)]

    return run


def empty_of(shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """An array of zeros, or of empty strings."""
    output_shape(shape, dtype)
    return np.full(shape, b"", dtype) if dtype.kind == "O" else np.zeros(shape, dtype)


@kernel("StridedSliceGrad")
def strided_slice_grad(node: Construction) -> Kernel:
    """Zeros of the shape that was sliced, with dy where the slice was."""
    locate = locator(Masks.of(node.attrs))
    dtype = numpy_dtype(node.output_types[0])
    index_of = keeping_results(lambda shape, *bounds: locate(tuple(shape.tolist()), *bounds))

    def run(shape: Array, begin: Array, end: Array, strides: Array, dy: Array) -> Array:
        return with_gradient(empty_of(sizes_of(shape), dtype), index_of(shape, begin, end, strides), dy)

    return run


def with_gradient(result: Array, index: tuple[IndexEntry, ...], dy: Array) -> Array:
    """`result` with dy at an index; InvalidArgumentError unless it has the shape of what was there."""
    cut = result[index]
    if dy.shape != cut.shape:
        raise wrong_gradient(dy.shape, cut.shape)
    cut[...] = dy
    return result


def wrong_gradient(shape: tuple[int, ...], expected: tuple[int, ...]) -> InvalidArgumentError:
    """The error for a gradient that has not the shape of the slice."""
    return InvalidArgumentError(f"shape of dy was {shape_text(shape)} instead of {shape_text(expected)}")


def overwriting(attrs: Mapping[str, Any]) -> Callable[[Array, Array, Array, Array, Array], Array]:
    """A function from a tensor, begin, end, strides and a value to a copy of the tensor with the value in the slice.

    The value is broadcast to the slice; any value fits an empty one. `attrs` hold the masks.
    """
    locate = locator(Masks.of(attrs))

    def overwritten(x: Array, begin: Array, end: Array, strides: Array, value: Array) -> Array:
        result = np.array(x)
        index = locate(result.shape, begin, end, strides)
        cut = result[index]
        try:
            if cut.size:
                result[index] = value
        except ValueError:
            raise InvalidArgumentError(
                f"Cannot broadcast input shape {shape_text(value.shape)} into final shape {shape_text(cut.shape)}"
            ) from None
        return result

    return overwritten


@kernel("TensorStridedSliceUpdate")
def tensor_strided_slice_update(node: Construction) -> Kernel:
    """A copy of the input with `value`, broadcast if needed, in the slice."""
    return overwriting(node.attrs)


def concatenate(values: Sequence[Array], axis: Array) -> Array:
    """Tensors joined along an axis; InvalidArgumentError where they do not fit."""
    try:
        return np.concatenate(values, axis=axis.item())
    except ValueError:
        _explain_concat([x.shape for x in values], axis)
        raise


def _explain_concat(shapes: Sequence[tuple[int, ...]], axis: Array) -> None:
    rank = len(shapes[0])
    if axis.size != 1:
        raise InvalidArgumentError(f"axis tensor should be a scalar integer, but got shape {shape_text(axis.shape)}")
    place = axis.item()
    if rank and not -rank <= place < rank:
        raise InvalidArgumentError(
            f"ConcatOp : Expected concatenating dimensions in the range [{-rank}, {rank}), but got {place}"
        )
    for i, shape in enumerate(shapes):
        both = f"shape[0] = {shape_text(shapes[0])} vs. shape[{i}] = {shape_text(shape)}"
        if len(shape) != rank:
            raise InvalidArgumentError(f"ConcatOp : Ranks of all input tensors should match: {both}")
        for k in range(rank):
            if k != place % rank and shape[k] != shapes[0][k]:
                raise InvalidArgumentError(f"ConcatOp : Dimension {k} in both shapes must be equal: {both}")
    raise InvalidArgumentError("ConcatOp : Can't concatenate scalars (use tf.stack instead)")


simple("ConcatV2", lambda *inputs: concatenate(inputs[:-1], inputs[-1]))
simple("Concat", lambda axis, *values: concatenate(values, axis))


def _split_axis(split_dim: Array, rank: int) -> int:
    require(split_dim.size == 1, "split_dim must have exactly one element.")
    axis = int(split_dim.item())
    if not -rank <= axis < rank:
        raise InvalidArgumentError(f"-input rank(-{rank}) <= split_dim < input rank ({rank}), but got {axis}")
    return axis + rank if axis < 0 else axis


def _cuts(axis: int, sizes: Sequence[int]) -> list[tuple[slice, ...]]:
    """The indices of consecutive parts along an axis."""
    before: tuple[slice, ...] = (slice(None),) * axis
    return [(*before, slice(end - size, end)) for size, end in zip(sizes, accumulate(sizes), strict=True)]


@kernel("Split")
def split(node: Construction) -> Kernel:
    """`num_split` views of equal size along an axis."""
    count = node.attrs["num_split"]

    def run(split_dim: Array, x: Array) -> object:
        return outputs([x[cut] for cut in even_cuts(split_dim, x.shape, count)])

    return run


def even_cuts(split_dim: Array, shape: tuple[int, ...], count: int) -> list[tuple[slice, ...]]:
    """The indices of `count` parts of one size; InvalidArgumentError where there are none."""
    if split_dim.ndim:
        raise InvalidArgumentError(f"split_dim must be a scalar but has rank {split_dim.ndim}")
    axis = _split_axis(split_dim, len(shape))
    if shape[axis] % count:
        raise InvalidArgumentError(
            "Number of ways to split should evenly divide the split dimension, but got split_dim "
            f"{axis} (size = {shape[axis]}) and num_split {count}"
        )
    return _cuts(axis, (shape[axis] // count,) * count)


@kernel("SplitV")
def split_v(node: Construction) -> Kernel:
    """Views of the given sizes along an axis; one size of -1 stands for the remaining elements."""
    count = node.attrs["num_split"]

    def run(x: Array, sizes: Array, split_dim: Array) -> object:
        axis = _split_axis(split_dim, x.ndim)
        if sizes.ndim != 1 or sizes.size != count:
            raise InvalidArgumentError(
                "size of the split_tensor must be 1-D and have the same elements as outputs got "
                f"{sizes.ndim} -D and {sizes.size} elements"
            )
        return outputs([x[cut] for cut in _cuts(axis, split_sizes(sizes.tolist(), x.shape[axis]))])

    return run


def split_sizes(sizes: list[int], length: int) -> list[int]:
    """`sizes` with a -1 resolved; InvalidArgumentError unless their sum is then `length`."""
    total = sum(size for size in sizes if size != -1)
    if sizes.count(-1) > 1:
        raise InvalidArgumentError("There can only be one -1 in the input.")
    if len(sizes) == 1 and sizes[0] != length:
        raise InvalidArgumentError(
            "If there is only one output, it must have the same size as the input. "
            f"Input size: {length} output size: {sizes[0]}"
        )
    for i, size in enumerate(sizes):
        if size < -1:
            raise InvalidArgumentError(f"Split size at index {i} must be >= 0. Got: {size}")
    if total > length or (-1 not in sizes and total != length):
        raise InvalidArgumentError(
            "Determined shape must either match input shape along split_dim exactly if fully specified, or be less "
            f"than the size of the input along split_dim if not fully specified.  Got: {total}"
        )
    return [length - total if size == -1 else size for size in sizes]


def stacked(values: Sequence[Array], axis: int = 0) -> Array:
    """Tensors of one shape along a new axis, which is not negative.

    What is next to each other along the new axis is joined along the axis behind it, if there is one, and only the
    result is reshaped: `np.stack` would reshape every tensor, which takes longer than to copy a small one.
    """
    shape = values[0].shape
    if axis < len(shape):
        return np.concatenate(values, axis).reshape((*shape[:axis], len(values), *shape[axis:]))
    return np.stack(values, axis)


@kernel("Pack")
def pack(node: Construction) -> Kernel:
    """The inputs, all of one shape, stacked along a new axis."""
    axis = node.attrs["axis"]
    dtype = numpy_dtype(node.output_types[0])
    numbers = dtype.kind != "O"

    def run(*values: Array) -> Array:
        shape = values[0].shape
        rank = len(shape) + 1
        if not -rank <= axis < rank:
            raise InvalidArgumentError(f"axis = {axis} not in [{-rank}, {rank})")
        for i, x in enumerate(values):
            if x.shape != shape:
                raise InvalidArgumentError(
                    f"Shapes of all inputs must match: values[0].shape = {shape_text(shape)} != "
                    f"values[{i}].shape = {shape_text(x.shape)}"
                )
        if rank == 1 and numbers:
            return np.array(values, dtype)
        return stacked(values, axis % rank)

    return run


@kernel("Unpack")
def unpack(node: Construction) -> Kernel:
    """The `num` slices of the input along an axis, as views without that axis."""
    axis, count = node.attrs["axis"], node.attrs["num"]
    scalars = numpy_dtype(node.input_types[0]).kind != "O"
    places = cache(lambda rank: [(*(slice(None),) * (axis % rank), i, ...) for i in range(count)])

    def run(x: Array) -> object:
        rank = x.ndim
        if not -rank <= axis < rank:
            raise InvalidArgumentError(f"axis = {axis} not in [{-rank}, {rank})")
        if x.shape[axis] != count:
            raise InvalidArgumentError(
                f"Input shape axis {axis % rank} must equal {count}, got shape {shape_text(x.shape)}"
            )
        if axis in (0, -rank) and (scalars or rank > 1):
            return outputs(list(x))
        return outputs([x[place] for place in places(rank)])

    return run
