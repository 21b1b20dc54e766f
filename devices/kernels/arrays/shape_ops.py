"""Kernels that read shapes, change shapes, permute axes, and make tensors from sizes.

The results are views wherever elements keep their order in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import expanded, range_length, range_value, reshaped, shape_text, squeezed
from ....graph.dtypes import Array, numpy_dtype
from ..checks import scalar_of, vector_of
from ..output_size import output_shape
from ..registry import Construction, Kernel, kernel, outputs, simple
from .indices import sizes_of
from .latest import keeping_results

_KEPT_SHAPES = 64
_FEW = 256


@kernel("Shape")
def shape(node: Construction) -> Kernel:
    """Sizes of the input."""
    sizes = _sizes(node)
    return lambda x: sizes(x.shape)


def _sizes(node: Construction) -> Callable[[tuple[int, ...]], Array]:
    """A function that makes a tensor of a shape; nodes see few of them, and kept ones take a third of the time."""
    dtype = numpy_dtype(node.output_types[0])

    @lru_cache(_KEPT_SHAPES)
    def sizes(shape: tuple[int, ...]) -> Array:
        result = np.array(shape, dtype)
        result.flags.writeable = False
        return result

    return sizes


@kernel("ShapeN")
def shape_n(node: Construction) -> Kernel:
    """Sizes of each input."""
    sizes = _sizes(node)
    return lambda *values: outputs([sizes(x.shape) for x in values])


@kernel("Size")
def size(node: Construction) -> Kernel:
    """Number of elements."""
    scalar = numpy_dtype(node.output_types[0]).type
    return lambda x: scalar(x.size)


simple("Rank", lambda x: np.int32(x.ndim))


def reshape(x: Array, sizes: Array) -> Array:
    """The elements in order under new sizes, one of which may be -1."""
    if sizes.ndim > 1:
        raise InvalidArgumentError(f"sizes input must be 1-D, not {shape_text(sizes.shape)}")
    requested = sizes.tolist() if sizes.ndim else [sizes.item()]
    if requested and min(requested) < -1:  # numpy takes any negative size for an unknown one
        reshaped(x.shape, requested)
    try:
        return x.reshape(requested)
    except ValueError:
        return x.reshape(reshaped(x.shape, requested))


simple("Reshape", reshape)


@kernel("Squeeze")
def squeeze(node: Construction) -> Kernel:
    """The input without the listed sizes of one, or without all of them."""
    axes = node.attrs["squeeze_dims"]
    kept = lru_cache(_KEPT_SHAPES)(lambda shape: squeezed(shape, axes))
    return lambda x: x.reshape(kept(x.shape))


def expand_dims(x: Array, axis: Array) -> Array:
    """The input with a size of one inserted before `axis`."""
    if axis.size != 1:
        raise InvalidArgumentError("'dim' must be a tensor with a single value")
    return x.reshape(expanded(x.shape, axis.item()))


simple("ExpandDims", expand_dims)


def broadcast_to(x: Array, sizes: Array) -> Array:
    """The input stretched to the requested sizes: a read-only view, or where it is small a copy, which is faster."""
    target = output_shape(sizes_of(sizes), x.dtype)
    try:
        if prod(target) <= _FEW and x.ndim <= len(target):
            result = np.empty(target, x.dtype)
            result[...] = x
            return result
        return np.broadcast_to(x, target)
    except ValueError:
        source = shape_text(x.shape)
    if x.ndim > len(target):
        raise InvalidArgumentError(
            f"Rank of input ({x.ndim}) must be no greater than rank of output shape ({len(target)})."
        )
    padded = (1,) * (len(target) - x.ndim) + x.shape
    if any(s != w and 1 not in (s, w) for s, w in zip(padded, target, strict=True)):
        raise InvalidArgumentError(f"Incompatible shapes: {source} vs. {shape_text(target)}")
    raise InvalidArgumentError(f"Unable to broadcast tensor of shape {source} to tensor of shape {shape_text(target)}")


simple("BroadcastTo", broadcast_to)


def broadcast_args(s0: Array, s1: Array) -> Array:
    """The shape to which tensors of the shapes `s0` and `s1` broadcast."""
    for i, s in enumerate((s0, s1)):
        if s.ndim != 1:
            raise InvalidArgumentError(f"In[{i}] must be a vector.{shape_text(s.shape)}")
    try:
        return np.array(np.broadcast_shapes(tuple(s0.tolist()), tuple(s1.tolist())), s0.dtype)
    except ValueError:
        raise InvalidArgumentError(
            f"Incompatible shapes: {shape_text(tuple(s0.tolist()))} vs. {shape_text(tuple(s1.tolist()))}"
        ) from None


simple("BroadcastArgs", broadcast_args)


@kernel("Fill")
def fill(node: Construction) -> Kernel:
    """A tensor of the requested sizes with one value everywhere."""
    dtype = numpy_dtype(node.output_types[0])

    def run(sizes: Array, value: Array) -> Array:
        if value.shape not in ((), (1,)):
            raise InvalidArgumentError(f"value must represent a scalar, got shape {shape_text(value.shape)}")
        result = np.empty(output_shape(sizes_of(sizes.reshape(1) if sizes.ndim == 0 else sizes), dtype), dtype)
        result.fill(value.item() if dtype.kind == "O" else value.reshape(()))
        return result

    return run


@kernel("Range")
def make_range(node: Construction) -> Kernel:
    """start, start + delta, ... up to but not including limit."""
    dtype = numpy_dtype(node.output_types[0])
    whole = dtype.kind in "iu"

    def run(start: Array, limit: Array, delta: Array) -> Array:
        for x, what in ((start, "start"), (limit, "limit"), (delta, "delta")):
            if x.size != 1:
                raise InvalidArgumentError(f"{what} must be a scalar, not shape {shape_text(x.shape)}")
        first, step = range_value(start), range_value(delta)
        steps = range_length(first, range_value(limit), step)
        output_shape((steps,), dtype)
        if whole:
            return np.arange(first, first + steps * step, step, dtype=dtype)
        result: Array = first + np.arange(steps).astype(dtype) * step
        return result

    return run


@kernel("LinSpace")
def linspace(node: Construction) -> Kernel:
    """`num` values at equal distances, both ends included."""
    dtype = numpy_dtype(node.output_types[0])

    def run(start: Array, stop: Array, num: Array) -> Array:
        for x, what in ((start, "start"), (stop, "stop")):
            if x.ndim:
                raise InvalidArgumentError(f"{what} must be a scalar, not shape {shape_text(x.shape)}")
        count = scalar_of(num, "num")
        if count <= 0:
            raise InvalidArgumentError(f"Requires num > 0: {count}")
        first, last = dtype.type(start), dtype.type(stop)
        if count == 1:
            return np.array([first], dtype)
        output_shape((count,), dtype)
        result = first + (last - first) / dtype.type(count - 1) * np.arange(count).astype(dtype)
        result[-1] = last
        return np.asarray(result, dtype)

    return run


Tiling = tuple[list[int], list[int], list[int]]
"""shapes: of the result with two axes for each axis of the input, of the input with as many, and of the result

Where no axis of two or more is repeated, the result itself is in the place of the first."""


def tiling(shape: tuple[int, ...], multiples: Array) -> Tiling:
    """How to repeat a tensor of that shape; InvalidArgumentError for multiples that do not fit it."""
    times = multiples.tolist()
    if multiples.ndim != 1:
        raise InvalidArgumentError(f"Expected multiples to be 1-D, but got shape {shape_text(multiples.shape)}")
    if len(times) != len(shape):
        raise InvalidArgumentError(
            f"Expected multiples argument to be a vector of length {len(shape)} but got length {len(times)}"
        )
    blocks: list[int] = []
    singles: list[int] = []
    final: list[int] = []
    for i, (count, length) in enumerate(zip(times, shape, strict=True)):
        if count < 0:
            raise InvalidArgumentError(f"Expected multiples[{i}] >= 0, but got {count}")
        blocks += (count, length)
        singles += (1, length)
        final.append(count * length)
    if all(1 in pair for pair in zip(times, shape, strict=True)):  # then it only broadcasts
        return final, list(shape), final
    return blocks, singles, final


def tile(x: Array, forms: Tiling) -> Array:
    """The input repeated along each axis."""
    blocks, singles, final = forms
    result = np.empty(output_shape(blocks, x.dtype), x.dtype)
    if blocks is final:
        result[...] = x
        return result
    result[...] = x.reshape(singles)
    return result.reshape(final)


simple("Tile", lambda x, multiples: tile(x, tiling(x.shape, multiples)))


def tile_grad(grad: Array, multiples: Array) -> Array:
    """The sum of the repetitions that Tile made."""
    times = vector_of(multiples, "multiples")
    if len(times) != grad.ndim or any(n < 1 or size % n for n, size in zip(times, grad.shape, strict=True)):
        raise InvalidArgumentError(f"{multiples.tolist()} repetitions do not make shape {shape_text(grad.shape)}")
    blocks = [part for n, size in zip(times, grad.shape, strict=True) for part in (n, size // n)]
    return np.asarray(np.add.reduce(grad.reshape(blocks), tuple(range(0, len(blocks), 2)), grad.dtype))


simple("TileGrad", tile_grad)


def _check_permutation(rank: int, perm: Array) -> None:
    if perm.ndim != 1:
        raise InvalidArgumentError(f"perm must be rank 1, got shape {shape_text(perm.shape)}")
    axes = perm.tolist()
    if len(axes) != rank:
        raise InvalidArgumentError(
            f"transpose expects a vector of size {rank}. But input(1) is a vector of size {len(axes)}"
        )
    for axis in axes:
        if not -rank <= axis < rank:
            raise InvalidArgumentError(f"{axis} is out of range [0 .. {rank})")
    missing = min(set(range(rank)) - {axis % rank for axis in axes})
    raise InvalidArgumentError(f"{missing} is missing from {{{','.join(map(str, axes))}}}.")


def transpose(x: Array, perm: Array) -> Array:
    """A view with axis i taken from axis perm[i] of the input."""
    axes = perm.tolist()
    if not axes:  # numpy takes an empty permutation for "reverse all axes"
        if x.ndim:
            _check_permutation(x.ndim, perm)
        return x
    try:
        return x.transpose(axes)
    except (ValueError, TypeError):
        _check_permutation(x.ndim, perm)
        raise


simple("Transpose", transpose)


@kernel("ConjugateTranspose")
def conjugate_transpose(node: Construction) -> Kernel:
    """The complex conjugate of the transposed input; a plain transpose for real types."""
    if numpy_dtype(node.output_types[0]).kind != "c":
        return transpose
    return lambda x, perm: np.conjugate(transpose(x, perm))


def invert_permutation(x: Array) -> Array:
    """The permutation y with y[x[i]] = i."""
    if x.ndim != 1:
        raise InvalidArgumentError("invert_permutation expects a 1D vector.")
    seen = np.zeros(x.size, np.bool_)
    for place in x.tolist():
        if not 0 <= place < x.size:
            raise InvalidArgumentError(f"{place} is not between 0 and {x.size}")
        if seen[place]:
            raise InvalidArgumentError(f"{place} is duplicated in the input.")
        seen[place] = True
    inverse = np.empty_like(x)
    inverse[x] = np.arange(x.size, dtype=x.dtype)
    return inverse


simple("InvertPermutation", invert_permutation)


@kernel("ConcatOffset")
def concat_offset(node: Construction) -> Kernel:
    """The start of each of several shapes in their concatenation along an axis."""
    dtype = numpy_dtype(node.output_types[0])

    @keeping_results
    def run(concat_dim: Array, *shapes: Array) -> object:
        rank = shapes[0].size
        axis = scalar_of(concat_dim, "Concat dim tensor")
        if not -rank <= axis < rank:
            raise InvalidArgumentError(f"Concat dim is out of range: {axis} vs. {rank}")
        axis %= rank
        starts = np.zeros((len(shapes), rank), dtype)
        for i, sizes in enumerate(shapes):
            _check_concat_sizes(axis, shapes[0], sizes, i)
            if i:
                starts[i, axis] = starts[i - 1, axis] + shapes[i - 1][axis]
        return outputs(list(starts))

    return run


def _check_concat_sizes(axis: int, first: Array, sizes: Array, i: int) -> None:
    if sizes.ndim != 1:
        raise InvalidArgumentError(f"input {i} should be a vector, but got shape {shape_text(sizes.shape)}")
    if sizes.size != first.size:
        raise InvalidArgumentError(f"input {i} should contain {first.size} elements, but got {sizes.size}")
    if any(a != b for k, (a, b) in enumerate(zip(first, sizes, strict=True)) if k != axis):
        raise InvalidArgumentError(
            f"All dimensions except {axis} must match. Input {i} has shape [{' '.join(map(str, sizes))}] "
            f"and doesn't match input 0 with shape [{' '.join(map(str, first))}]."
        )
