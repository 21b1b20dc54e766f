"""Kernels of nodes that slice, split or join, and whose small integer inputs are constants of their plan.

What begin, end, strides, sizes and axes mean is worked out once, for the latest shape of the tensor where it depends on
that; a run only applies it. Unrolled networks have thousands of such nodes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....graph.dtypes import Array, numpy_dtype
from ....graph.ops.arrays.strided import Masks, numpy_index
from ..registry import Construction, Kernel, binding, outputs
from .latest import for_latest_shape
from .slicing import (
    concatenate,
    empty_of,
    even_cuts,
    locator,
    slice_index,
    strided_slice,
    take_slice,
    with_gradient,
    wrong_gradient,
)


@binding("Slice", 1, 2)
def slice_between(node: Construction, begin: Array, size: Array) -> Kernel:
    """The slice of any tensor from the same place and of the same size."""
    starts, sizes = begin.tolist(), size.tolist()
    index_for = for_latest_shape(lambda shape: slice_index(starts, sizes, shape))

    def run(x: Array) -> Array:
        if x.ndim != len(starts):
            return take_slice(x, begin, size)
        return x[index_for(x.shape)]

    return run


@binding("StridedSlice", 1, 2, 3)
def slice_at(node: Construction, begin: Array, end: Array, strides: Array) -> Kernel:
    """The same part of any tensor."""
    ordinary = strided_slice(node)
    if numpy_dtype(node.output_types[0]).kind == "O":
        return lambda x: ordinary(x, begin, end, strides)
    index = tuple(numpy_index(begin.tolist(), end.tolist(), strides.tolist(), Masks.of(node.attrs)))

    def run(x: Array) -> Any:  # an array, or a scalar of any type
        try:
            return x[index]
        except (IndexError, ValueError):
            return ordinary(x, begin, end, strides)

    return run


@binding("StridedSliceGrad", 0, 1, 2, 3)
def into_zeros(node: Construction, shape: Array, *bounds: Array) -> Kernel:
    """Zeros of one shape, with dy always in the same place."""
    sizes, dtype = tuple(shape.tolist()), numpy_dtype(node.output_types[0])
    index = locator(Masks.of(node.attrs))(sizes, *bounds)
    expected = np.broadcast_to(np.empty((), dtype), sizes)[index].shape

    def run(dy: Array) -> Array:
        if dy.shape != expected:
            raise wrong_gradient(dy.shape, expected)
        result = empty_of(sizes, dtype)
        result[index] = dy
        return result

    return run


@binding("StridedSliceGrad", 1, 2, 3)
def into_zeros_of_shape(node: Construction, *bounds: Array) -> Kernel:
    """Zeros of any shape, with dy always in the same place."""
    locate = locator(Masks.of(node.attrs))
    index_for = for_latest_shape(lambda sizes: locate(sizes, *bounds))
    dtype = numpy_dtype(node.output_types[0])

    def run(shape: Array, dy: Array) -> Array:
        sizes = tuple(shape.tolist())
        result = empty_of(sizes, dtype)
        return with_gradient(result, index_for(sizes), dy)

    return run


@binding("ConcatV2", -1)
def concatenate_along(node: Construction, axis: Array) -> Kernel:
    """Tensors joined along always the same axis."""
    place, join = int(axis.item()), np.concatenate

    def run(*values: Array) -> Array:
        try:
            return join(values, place)
        except ValueError:
            return concatenate(values, axis)

    return run


@binding("Split", 0)
def split_along(node: Construction, split_dim: Array) -> Kernel:
    """Views of equal size along always the same axis."""
    count = node.attrs["num_split"]
    cuts_for = for_latest_shape(lambda shape: even_cuts(split_dim, shape, count))
    return lambda x: outputs([x[cut] for cut in cuts_for(x.shape)])
