"""Kernels of the ops that fill a tensor row by row: InplaceUpdate and the like, ParallelConcat, Empty.

TensorFlow's write into their first input; here an input never changes, so they copy.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, dtype_name, numpy_dtype
from ..checks import require
from ..registry import Construction, Kernel, kernel
from .indices import sizes_of
from .slicing import empty_of

_ARITHMETIC: dict[str, Callable[[Array, Array], Array]] = {"InplaceAdd": np.add, "InplaceSub": np.subtract}


@kernel("InplaceUpdate", "InplaceAdd", "InplaceSub")
def inplace(node: Construction) -> Kernel:
    """The first input with row `i[k]` replaced by, or added to or reduced by, row k of `v`, one k after the other.

    Row numbers are taken modulo the number of rows, so every one is valid.
    """
    combine, dtype = _ARITHMETIC.get(node.op), node.output_types[0]
    if combine is not None and numpy_dtype(dtype).kind in "Ob":
        raise InvalidArgumentError(f"Unsupported data type: {dtype_name(dtype)}")

    def run(x: Array, i: Array, v: Array) -> Array:
        _check(x, i, v)
        result = np.array(x)
        if not len(x):
            return result
        for place, row in zip((i % len(x)).tolist(), v, strict=True):
            result[place] = row if combine is None else combine(result[place], row)
        return result

    return run


def _check(x: Array, i: Array, v: Array) -> None:
    """InvalidArgumentError unless `v` has a row of `x` for each number in `i`."""
    if i.ndim != 1:
        raise InvalidArgumentError(f"i must be a vector. {shape_text(i.shape)}")
    ranks = f"{shape_text(x.shape)} vs. {shape_text(v.shape)}"
    require(x.ndim == v.ndim, f"x and v shape doesn't match (ranks differ): {ranks}")
    for axis in range(1, x.ndim):
        require(x.shape[axis] == v.shape[axis], f"x and v shape doesn't match at index {axis} : {ranks}")
    count = f"{shape_text(i.shape)} vs. {shape_text(v.shape)}"
    require(v.ndim > 0 and len(i) == len(v), f"i and x shape doesn't match at index 0: {count}")


@kernel("ParallelConcat")
def parallel_concat(node: Construction) -> Kernel:
    """The inputs, of one row each, as the rows of one tensor of the declared shape."""
    shape = node.attrs["shape"]

    def run(*values: Array) -> Array:
        shapes = {value.shape for value in values}
        if not (shapes == {(1, *shape[1:])} and len(values) == shape[0]):
            raise InvalidArgumentError(
                f"values of the shapes {', '.join(map(shape_text, sorted(shapes)))} do not fill {shape_text(shape)}"
            )
        return np.concatenate(values)

    return run


@kernel("Empty")
def empty(node: Construction) -> Kernel:
    """Zeros, or empty strings, of any shape; TensorFlow's elements are arbitrary without the attr `init`."""
    dtype = numpy_dtype(node.output_types[0])
    return lambda shape: empty_of(sizes_of(shape, "shape must be a vector of int32, got shape {}"), dtype)
