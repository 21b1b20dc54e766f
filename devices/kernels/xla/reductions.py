"""Reductions of arrays, of one or several at a time, by a function that the node names.

XLA leaves the order open, so the function must be associative. Here it combines neighbours, then neighbouring results:
for n elements the function is called about log2(n) times, if it takes arrays.

    [a, b, c, d, e]  ->  [ab, cd, e]  ->  [abcd, e]  ->  [abcde]  ->  init abcde
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..checks import require
from ..datasets.dataset import PullSteps
from ..half_types import widen
from ..registry import Call, Construction, Start, deferred_kernel
from .computations import XlaComputation, carry_out, reducer


@deferred_kernel("XlaReduce", "XlaVariadicReduce", "XlaVariadicReduceV2")
def reduce(node: Construction) -> Start:
    """The elements along some axes and the initial values, combined; the other axes are left."""
    axes = tuple(node.attrs["dimensions_to_reduce"])
    computation = reducer(node, "reducer", node.output_types)

    def start(call: Call, *inputs: Array) -> None:
        arrays = list(map(np.asarray, inputs))
        carry_out(call, _reduced(computation, arrays[: len(arrays) // 2], arrays[len(arrays) // 2 :], axes))

    return start


def _reduced(
    computation: XlaComputation, arrays: Sequence[Array], initial: Sequence[Array], axes: tuple[int, ...]
) -> PullSteps[Sequence[Array]]:
    for array, value in zip(arrays, initial, strict=True):
        require(value.ndim == 0, f"init_value must be a scalar but got {shape_text(value.shape)}")
        require(array.shape == arrays[0].shape, "all arrays of a reduction must have one shape")
    require(
        len({*axes}) == len(axes) and all(0 <= axis < arrays[0].ndim for axis in axes),
        "Invalid dimensions_to_reduce argument to XlaReduce",
    )
    if computation.ufunc is not None:
        x, dtype = widen(arrays[0]), arrays[0].dtype
        total = computation.ufunc.reduce(x, axes, x.dtype, initial=initial[0].astype(x.dtype))
        return (np.asarray(total, dtype),)
    rows = [_rows_first(array, axes) for array in arrays]
    while len(rows[0]) > 1:
        rows = yield from _halved(computation, rows)
    starts = [np.broadcast_to(value, row.shape[1:]) for value, row in zip(initial, rows, strict=True)]
    if not len(rows[0]):
        return starts
    return (yield from computation.each(*starts, *[row[0] for row in rows]))


def _rows_first(array: Array, axes: tuple[int, ...]) -> Array:
    """The array with what is reduced along axis 0, in order."""
    kept = [axis for axis in range(array.ndim) if axis not in axes]
    sizes = [array.shape[axis] for axis in sorted(axes)]
    return array.transpose([*sorted(axes), *kept]).reshape(prod(sizes), *[array.shape[axis] for axis in kept])


def _halved(computation: XlaComputation, rows: Sequence[Array]) -> PullSteps[list[Array]]:
    """Each two rows combined; a last one without a neighbour stays."""
    paired = len(rows[0]) // 2 * 2
    left, right = ([row[first:paired:2] for row in rows] for first in (0, 1))
    combined = yield from computation.each(*left, *right)
    return [np.concatenate([result, row[paired:]]) for result, row in zip(combined, rows, strict=True)]
