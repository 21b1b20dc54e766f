"""The order in memory of arrays that are not C-contiguous: they arrive with the same, so that kernels compute the same.

numpy adds up, multiplies and takes exponentials in different ways where elements are dense, strided, reversed or
repeated in memory, and the last bits of its results differ. What decides is which axis is inside which, and where there
is a gap between elements; how large the gap is does not matter. So an array arrives with its axes in the same order,
reversed ones reversed, repeated ones repeated (their elements travel once), and gaps of one element for whatever gap
there was:

    x [4, 6] float32           its memory        what travels    arrives as
    x.T                        6 inside 4        24 elements     6 inside 4
    x[:, ::2]                  gaps inside       12 elements     [4, 3] with a step of 2 elements
    x[:, :3]                   gaps between      12 elements     [4, 3] with a step of 4 elements
    broadcast_to(x[0], [4, 6]) 4 times the same   6 elements     4 times the same

The memory of an array with gaps is less than three times that of its elements. Two axes without a gap between them stay
so: numpy sees one long axis there. Not kept: steps of more than 2 GB, axes that overlap (they arrive apart), and arrays
that do not begin at a multiple of the size of their elements (they arrive at one). No kernel here makes such arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ...graph.dtypes import Array, Dims
from .sections import damaged

_GAP, _REVERSED, _REPEATED = 1, 2, 4
_FLAGS = 8  # a term is the number of an axis times this, and flags


def is_in_usual_order(array: Array) -> bool:
    """Whether an array is C-contiguous, which numpy also says of one whose axes of one element are reversed.

    Its loops do not: the exponential of one float64 is another one there.
    """
    if not array.flags.c_contiguous:
        return False
    return 1 not in array.shape or min(array.strides) >= 0 or not array.size


def memory_order(array: Array) -> tuple[list[int], Array]:
    """A term for each axis, the outermost in memory first, and a view of the elements that travel in that order.

    The array has elements.
    """
    shape, strides = array.shape, array.strides
    axes = sorted(range(array.ndim), key=lambda axis: -abs(strides[axis]))
    terms, dense = [], array.itemsize
    for axis in reversed(axes):
        size, stride = shape[axis], strides[axis]
        flags = _REVERSED if stride < 0 else 0
        if size > 1:
            flags = _REPEATED if stride == 0 else flags + (abs(stride) != dense) * _GAP
            dense = dense if stride == 0 else abs(stride) * size
        terms.append(axis * _FLAGS + flags)
    terms.reverse()
    once = tuple([_once(term % _FLAGS) for term in sorted(terms)])  # a term begins with its axis
    return terms, array[once].transpose(axes)


def _once(flags: int) -> slice:
    """What of an axis travels, from its start in memory."""
    return slice(0, 1) if flags & _REPEATED else slice(None, None, -1 if flags & _REVERSED else 1)


def travelling(shape: Dims, terms: Sequence[int]) -> Dims:
    """The sizes of the axes in the order of memory, 1 for those that are repeated.

    DataLossError unless there is a right term for each axis.
    """
    if sorted(term // _FLAGS for term in terms) != list(range(len(shape))):
        raise damaged("an order of axes names an axis twice, or one that is not there")
    sizes = []
    for term in terms:
        size, flags = shape[term // _FLAGS], term % _FLAGS
        if flags > _REPEATED or (flags > 0 and size < 2 and not (flags == _REVERSED and size == 1)):
            raise damaged(f"an axis of size {size} has the flags {flags}")
        sizes.append(1 if flags & _REPEATED else size)
    return tuple(sizes)


def in_order(elements: Array, shape: Dims, terms: Sequence[int]) -> Array:
    """The array of that shape, in memory of its own, with the elements that travelled, whose shape is `travelling`."""
    strides, inside = [0] * len(shape), [0] * len(terms)
    first, step = 0, 1
    for place in range(len(terms) - 1, -1, -1):
        axis, flags = divmod(terms[place], _FLAGS)
        if flags & _REPEATED:
            continue
        step += flags & _GAP
        inside[place] = step
        strides[axis] = -step if flags & _REVERSED else step
        first += step * (shape[axis] - 1) if flags & _REVERSED else 0
        step *= shape[axis]
    dtype: np.dtype[Any] = elements.dtype
    # Plain bytes: numpy gives no view of other arrays of ml_dtypes.
    memory = np.empty(step * dtype.itemsize, np.uint8)

    def view(sizes: Dims, start: int, steps: Sequence[int]) -> Array:
        return np.ndarray(sizes, dtype, memory, start * dtype.itemsize, [n * dtype.itemsize for n in steps])

    view(elements.shape, 0, inside)[...] = elements
    return view(shape, first, strides)


def stored_bytes(array: Array) -> int:
    """The bytes of the elements of an array, those that are repeated in memory once."""
    if array.flags.c_contiguous:
        return int(array.nbytes)
    pairs = zip(array.shape, array.strides, strict=True)
    return int(array.itemsize) * prod([int(size) for size, stride in pairs if stride or not size])
