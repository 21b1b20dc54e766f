"""Axes that an op reduced over or joined along: as numbers if they are known before the run, else as nodes.

Gradient rules use these helpers to make shapes with 1 in place of reduced sizes, and to broadcast tensors back. Known
values become constants; no nodes are added to compute them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..dtypes import DataType
from .gradient_support import rank_of, shape_of

if TYPE_CHECKING:
    from ..builder.handles import Tensor
    from .gradient_rules import Forward


def known_axes(op: Forward, port: int) -> tuple[int, ...] | None:
    """The axes that input `port` names, counted from the front; None if they or the rank are unknown."""
    value, sizes = op.constant_input(port), op.input_sizes(0)
    if value is None or not isinstance(sizes, tuple):
        return None
    return tuple(sorted({int(axis) % max(len(sizes), 1) for axis in np.ravel(value)}))


def kept_shape(op: Forward, axes_port: int = 1) -> Tensor:
    """The shape of input 0 with 1 in place of the sizes of the axes that input `axes_port` names."""
    g, axes, sizes = op.g, known_axes(op, axes_port), op.input_sizes(0)
    if axes is not None and isinstance(sizes, tuple):
        kept = [1 if axis in axes else size for axis, size in enumerate(sizes)]
        if sum(size < 0 for size in kept) <= 1 and 0 not in kept:
            return g.constant([max(size, -1) for size in kept], DataType.INT32)
    rank = rank_of(op, 0)
    named = op.make("Cast", op.inputs[axes_port], DstT=DataType.INT32)
    named = op.make("Reshape", op.make("FloorMod", named + rank, rank), g.constant([-1], DataType.INT32))
    ones = op.make("OnesLike", named)
    every = op.make("Range", 0, rank, 1)
    return op.make("DynamicStitch", [every, named], [shape_of(op, 0), ones])


def as_kept(op: Forward, tensor: Tensor) -> Tensor:
    """Reshapes a tensor of the output's shape so that the reduced axes are back with size 1."""
    return tensor if op.attrs["keep_dims"] else op.make("Reshape", tensor, kept_shape(op))


def stretched(op: Forward, tensor: Tensor) -> Tensor:
    """Broadcasts a tensor of the output's shape to the shape of the input, along all reduced axes."""
    axes = known_axes(op, 1)
    in_front = axes is not None and axes == tuple(range(len(axes)))  # then broadcasting adds these axes itself
    kept = tensor if in_front else as_kept(op, tensor)
    return op.make("BroadcastTo", kept, shape_of(op, 0))


def reduced_count(op: Forward, dtype: DataType) -> Tensor:
    """How many elements of the input were reduced to one of the output, as a scalar of type `dtype`."""
    axes, sizes = known_axes(op, 1), op.input_sizes(0)
    if axes is not None and isinstance(sizes, tuple) and all(sizes[axis] >= 0 for axis in axes):
        return op.g.constant(int(np.prod([sizes[axis] for axis in axes], dtype=np.int64)), dtype)
    of_input = op.make("Size", op.inputs[0])
    of_output = op.make("Maximum", op.make("Size", op.outputs[0]), 1)
    return op.make("Cast", op.make("FloorDiv", of_input, of_output), DstT=dtype)


def element(op: Forward, vector: Tensor, index: int) -> Tensor:
    """One element of a tensor of rank 1, as a scalar."""
    g = op.g
    ends = [g.constant([number], DataType.INT32) for number in (index, index + 1 if index != -1 else 0, 1)]
    return op.make("StridedSlice", vector, *ends, shrink_axis_mask=1)


def span(op: Forward, vector: Tensor, begin: int | Tensor, end: int | Tensor | None) -> Tensor:
    """Elements from `begin` up to `end` of a tensor of rank 1; all the rest if `end` is None."""
    g = op.g

    def bound(value: int | Tensor) -> Tensor:
        if isinstance(value, int):
            return g.constant([value], DataType.INT32)
        return op.make("Reshape", value, g.constant([1], DataType.INT32))

    last = bound(0 if end is None else end)
    return op.make("StridedSlice", vector, bound(begin), last, bound(1), end_mask=int(end is None))


def joined(op: Forward, parts: Sequence[Tensor], axis: Tensor | int = 0) -> Tensor:
    """The concatenation of tensors along an axis; a single tensor is returned unchanged."""
    return parts[0] if len(parts) == 1 else op.make("ConcatV2", list(parts), axis)
