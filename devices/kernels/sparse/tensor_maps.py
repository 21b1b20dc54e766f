"""Sparse tensors that wait in a map of the device: put there under a number, and taken out, several in one.

A map is shared by the nodes of one container and name. A tensor that is taken is no longer there.
"""

from __future__ import annotations

from itertools import count

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.dtypes import Array, DataType, dtype_name
from ...state import DEFAULT_CONTAINER
from ..checks import require
from ..registry import Construction, Kernel, kernel
from .serialized_sparse import check_parts, rows_of, stacked
from .sparse import SparseParts

_TYPE = "N10tensorflow16SparseTensorsMapE"  # TensorFlow's name for the class


class _TensorMap:
    """Sparse tensors by number; numbers are not used again."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._numbers = count()
        self._tensors: dict[int, tuple[SparseParts, DataType]] = {}

    def add(self, parts: SparseParts, dtype: DataType) -> int:
        number = next(self._numbers)
        self._tensors[number] = parts, dtype
        return number

    def take(self, number: int, dtype: DataType) -> SparseParts:
        """Removes a tensor; InvalidArgumentError if it is not there, or of another type."""
        if number not in self._tensors:
            raise InvalidArgumentError(f"Unable to find SparseTensor: {number} in map: {self._name}")
        actual = self._tensors[number][1]
        if actual != dtype:
            raise InvalidArgumentError(
                f"Requested SparseTensor of type {dtype_name(dtype)} but SparseTensor[{number}].values.dtype() == "
                f"{dtype_name(actual)}"
            )
        return self._tensors.pop(number)[0]


def _map_of(node: Construction) -> _TensorMap:
    """The map of a node's container and name, which is made on first use."""
    name = node.attrs["shared_name"].decode() or node.name
    key = node.attrs["container"].decode() or DEFAULT_CONTAINER, _TYPE, name
    found: _TensorMap = node.state.resource(key, lambda: _TensorMap(name))
    return found


@kernel("AddSparseToTensorsMap")
def add_sparse(node: Construction) -> Kernel:
    """The number of a sparse tensor, which is kept."""
    dtype = node.attrs["T"]

    def run(indices: Array, values: Array, shape: Array) -> Array:
        check_parts(indices, values, shape)
        return np.array(_map_of(node).add((indices, values, shape), dtype))

    return run


@kernel("AddManySparseToTensorsMap")
def add_many_sparse(node: Construction) -> Kernel:
    """The numbers of what a sparse tensor has under each first coordinate: [rows]."""
    dtype = node.attrs["T"]

    def run(indices: Array, values: Array, shape: Array) -> Array:
        numbers = [_map_of(node).add(parts, dtype) for parts in rows_of(indices, values, shape)]
        return np.array(numbers, np.int64)

    return run


@kernel("TakeManySparseFromTensorsMap")
def take_many_sparse(node: Construction) -> Kernel:
    """The sparse tensors of several numbers in one, with an axis for the numbers in front."""
    dtype = node.attrs["dtype"]

    def run(numbers: Array) -> SparseParts:
        require(numbers.ndim == 1, f"sparse_handles should be a vector but received rank {numbers.ndim}")
        require(numbers.size > 0, "Must have at least 1 serialized SparseTensor, but input matrix has 0 rows")
        held = _map_of(node)
        return stacked([held.take(number, dtype) for number in numbers.tolist()], numbers.shape)

    return run
