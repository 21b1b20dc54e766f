"""Kernels that reduce a sparse tensor along some of its axes, to a dense or a sparse tensor.

Elements with the same coordinates along the axes that are kept form a group.

    [[1 . 2] [. 3 .]] along axis 1      dense [2 3]      sparse: indices [0] [1], values 2 3, shape [2]      (maximum)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ....errors import InternalError, InvalidArgumentError
from ....graph.dtypes import Array
from ..arrays.gather import flat_places
from ..arrays.indices import run_starts
from ..checks import require
from ..registry import Construction, Kernel, kernel
from .sparse import check_sparse

GroupReduce = Callable[[Array, Array, int], Array]
"""from values, the group of each and the number of groups to one value per group"""


@dataclass(frozen=True, slots=True)
class _Axes:
    """The sizes of a tensor, and which of its axes are kept."""

    sizes: tuple[int, ...]
    kept: list[int]

    @property
    def outer(self) -> tuple[int, ...]:
        """The sizes of the axes that are kept."""
        return tuple(self.sizes[axis] for axis in self.kept)

    @property
    def with_ones(self) -> tuple[int, ...]:
        """The sizes with ones in place of the reduced axes."""
        return tuple(size if axis in self.kept else 1 for axis, size in enumerate(self.sizes))


def _axes(indices: Array, shape: Array, axes: Array) -> _Axes:
    sizes = tuple(shape.tolist())
    rank = len(sizes)
    require(indices.shape[1] == rank, "Order length must be SparseTensor rank.")
    for axis in axes.reshape(-1).tolist():
        if not -rank <= axis < rank:
            raise InvalidArgumentError(f"Invalid reduction dimension {axis}, for input with {rank} dimensions.")
    dropped = {axis % rank for axis in axes.reshape(-1).tolist()}
    return _Axes(sizes, [axis for axis in range(rank) if axis not in dropped])


def _sums(values: Array, groups: Array, count: int) -> Array:
    result = np.zeros(count, values.dtype)
    np.add.at(result, groups, values)
    return result


def _maxima(values: Array, groups: Array, count: int) -> Array:
    """The greatest value of each group, 0 of an empty one."""
    result = np.zeros(count, values.dtype)
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    if len(ordered):
        starts = run_starts(ordered)
        result[ordered[starts]] = np.maximum.reduceat(values[order], starts)
    return result


def _dense(node: Construction, reduce: GroupReduce) -> Kernel:
    keep: bool = node.attrs["keep_dims"]

    def run(indices: Array, values: Array, shape: Array, axes: Array) -> Array:
        check_sparse(indices, values, shape)
        chosen = _axes(indices, shape, axes)
        places = flat_places(indices[:, chosen.kept], chosen.outer)
        count = prod(chosen.outer)
        for place in places[places >= count].tolist()[:1]:
            raise InternalError(f"Obtained a write index of {place} which is outside of bounds of [0, {count})")
        result = reduce(values, places, count)
        return result.reshape(chosen.with_ones if keep else chosen.outer)

    return run


def _sparse(node: Construction, reduce: GroupReduce) -> Kernel:
    keep: bool = node.attrs["keep_dims"]

    def run(indices: Array, values: Array, shape: Array, axes: Array) -> tuple[Array, Array, Array]:
        check_sparse(indices, values, shape)
        chosen = _axes(indices, shape, axes)
        places = flat_places(indices[:, chosen.kept], chosen.outer)
        _, first, groups = np.unique(places, return_index=True, return_inverse=True)
        tuples: Any = indices[first]
        tuples = (
            np.where(np.isin(np.arange(len(chosen.sizes)), chosen.kept), tuples, 0) if keep else tuples[:, chosen.kept]
        )
        sizes = chosen.with_ones if keep else chosen.outer
        return tuples, reduce(values, groups.reshape(-1), len(first)), np.array(sizes, np.int64)

    return run


kernel("SparseReduceSum")(lambda node: _dense(node, _sums))
kernel("SparseReduceMax")(lambda node: _dense(node, _maxima))
kernel("SparseReduceSumSparse")(lambda node: _sparse(node, _sums))
kernel("SparseReduceMaxSparse")(lambda node: _sparse(node, _maxima))
