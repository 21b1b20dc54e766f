"""Kernels that reduce a tensor along axes given at run time: sums, products, extremes, means, norms, arg-extremes.

Integers wrap around in their own type, except that a mean adds in 64 bits; bfloat16 sums in float32; float32 and
float64 are added in TensorFlow's order where that is fast; a reduction over no elements gives the neutral element.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, numpy_dtype
from ..dense import dense
from ..elementwise.division import cut_quotient
from ..half_types import BFLOAT16, in_float32, is_half
from ..registry import Construction, Kernel, binding, kernel
from .in_order import ORDERED_TYPES, reduce_all, reduce_in_order
from .limits import highest, lowest
from .narrow import reduce_extreme


@lru_cache(1 << 10)
def _reduction_axes(axes: bytes, dtype: np.dtype[Any], rank: int) -> tuple[int, ...]:
    """The distinct axes of a tensor of `rank` that an index tensor's bytes name; InvalidArgumentError for others."""
    result: list[int] = []
    for axis in np.frombuffer(axes, dtype).tolist():
        if not -rank <= axis < rank:
            raise InvalidArgumentError(f"Invalid reduction dimension ({axis} for input with {rank} dimension(s)")
        axis %= rank
        if axis in result:
            raise InvalidArgumentError(f"Invalid reduction arguments: Axes contains duplicate dimension: {axis}")
        result.append(axis)
    return tuple(result)


Reduce = Callable[[Any, tuple[int, ...]], Any]
"""takes a tensor and distinct axes from 0 on"""


def _reduction(*ops: str) -> Callable[[Callable[[Construction], Reduce]], Callable[[Construction], Reduce]]:
    """Registers the kernels that the decorated function makes; constant axes are worked out once for every rank."""

    def register(make: Callable[[Construction], Reduce]) -> Callable[[Construction], Reduce]:
        def over_given_axes(node: Construction) -> Kernel:
            reduce = make(node)
            return lambda x, axes: reduce(x, _reduction_axes(axes.tobytes(), axes.dtype, x.ndim))

        def over_constant_axes(node: Construction, axes: Array) -> Kernel:
            reduce, axes_for_rank = make(node), cache(partial(_reduction_axes, axes.tobytes(), axes.dtype))
            return lambda x: reduce(x, axes_for_rank(x.ndim))

        for op in ops:
            kernel(op)(over_given_axes)
            binding(op, 1)(over_constant_axes)
        return make

    return register


@_reduction("Sum", "Prod")
def sum_or_product(node: Construction) -> Reduce:
    """Sum or product over the axes, in the type of the tensor."""
    ufunc = np.add if node.op == "Sum" else np.multiply
    dtype, keep = numpy_dtype(node.output_types[0]), node.attrs["keep_dims"]
    if dtype == BFLOAT16:
        return lambda x, axes: ufunc.reduce(dense(x).astype(np.float32), axes, keepdims=keep).astype(dtype)
    if dtype in ORDERED_TYPES:
        return lambda x, axes: reduce_in_order(ufunc, x, axes, keep)
    return lambda x, axes: ufunc.reduce(dense(x), axes, dtype, keepdims=keep)


@_reduction("Max", "Min")
def extreme(node: Construction) -> Reduce:
    """The greatest or least element over the axes, NaN if there is one; over none, the least or greatest value."""
    dtype, keep = numpy_dtype(node.output_types[0]), node.attrs["keep_dims"]
    ufunc, of_nothing = (np.maximum, lowest(dtype)) if node.op == "Max" else (np.minimum, highest(dtype))
    return lambda x, axes: reduce_extreme(ufunc, x, axes, keep, of_nothing)


@_reduction("All", "Any")
def logical(node: Construction) -> Reduce:
    """Whether all, or any, of the elements over the axes are true."""
    ufunc, keep = np.logical_and if node.op == "All" else np.logical_or, node.attrs["keep_dims"]
    return lambda x, axes: ufunc.reduce(x, axes, keepdims=keep)


def _count(x: Array, axes: tuple[int, ...]) -> int:
    return math.prod(x.shape[axis] for axis in axes)


def _averaged(x: Array, sums: Any) -> Any:
    """Sums of numbers of `x`, of as many each, by that number; in TensorFlow, too, a mean divides the sum."""
    return sums / (x.size // (sums.size or 1))


@_reduction("Mean")
def mean(node: Construction) -> Reduce:
    """The mean over the axes, for integers cut towards zero; over no elements NaN for floating types, else zero."""
    dtype, keep = numpy_dtype(node.output_types[0]), node.attrs["keep_dims"]
    if is_half(dtype):
        return lambda x, axes: (np.add.reduce(dense(x), axes, np.float32, keepdims=keep) / _count(x, axes)).astype(
            dtype
        )
    if dtype in ORDERED_TYPES:
        return lambda x, axes: _averaged(x, reduce_in_order(np.add, x, axes, keep))
    if dtype.kind not in "iu":
        least = 1 if dtype.kind == "c" else 0
        return lambda x, axes: np.add.reduce(dense(x), axes, keepdims=keep) / max(_count(x, axes), least)
    wide = np.dtype(np.uint64 if dtype.kind == "u" else np.int64)

    def of_integers(x: Array, axes: tuple[int, ...]) -> Any:
        total = np.add.reduce(x, axes, wide, keepdims=keep)
        return cut_quotient(total, wide.type(max(_count(x, axes), 1))).astype(dtype)

    return of_integers


@_reduction("EuclideanNorm")
def euclidean_norm(node: Construction) -> Reduce:
    """The square root of the sum of squared absolute values over the axes."""
    dtype, keep = numpy_dtype(node.output_types[0]), node.attrs["keep_dims"]

    def norm(x: Array, axes: tuple[int, ...]) -> Any:
        x = dense(x)
        squares = x * np.conjugate(x) if dtype.kind == "c" else x * x
        return np.sqrt(np.add.reduce(squares, axes, squares.dtype, keepdims=keep))

    if is_half(dtype):
        return lambda x, axes: norm(x.astype(np.float32), axes).astype(dtype)
    return norm if dtype.kind not in "iu" else lambda x, axes: norm(x, axes).astype(dtype)


@kernel("L2Loss")
def l2_loss(node: Construction) -> Kernel:
    """Half the sum of the squares of all elements."""
    return in_float32(lambda x: reduce_all(np.add, x * x) / 2, node.output_types[0])


_MOST_AXES = 7  # of an arg-extreme's input


@kernel("ArgMax", "ArgMin")
def arg_extreme(node: Construction) -> Kernel:
    """The index of the first greatest or least element along one axis; that of a NaN only if there is nothing else."""
    index_type, greatest = numpy_dtype(node.output_types[0]), node.op == "ArgMax"
    dtype = numpy_dtype(node.input_types[0])
    worst = None if dtype.kind in "iub" else lowest(dtype) if greatest else highest(dtype)

    def position(x: Array, dimension: Array) -> Any:
        if dimension.ndim:
            raise InvalidArgumentError(
                f"dim must be a scalar, but received tensor of shape: {shape_text(dimension.shape)}"
            )
        axis, rank = int(dimension), x.ndim
        if not -rank <= axis < rank:
            raise InvalidArgumentError(f"Expected dimension in the range [{-rank}, {rank}), but got {axis}")
        if rank > _MOST_AXES:
            raise InvalidArgumentError(
                f"Argmax and Argmin only support up to {_MOST_AXES} input dimensions, but got {rank}. "
                f"Inputs shape: {shape_text(x.shape)}"
            )
        if not x.shape[axis]:
            raise InvalidArgumentError(f"Reduction axis {axis % rank} is empty in shape {shape_text(x.shape)}")
        if worst is not None and (is_nan := np.isnan(x)).any():
            x = np.where(is_nan, worst, x)
        return (x.argmax(axis) if greatest else x.argmin(axis)).astype(index_type)

    return position
