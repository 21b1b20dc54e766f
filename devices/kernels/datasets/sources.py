"""Datasets that begin a pipeline: tensors, their rows, ranges of numbers, sparse tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ....errors import InvalidArgumentError, UnimplementedError
from ....graph.dtypes import Array, DataType, numpy_dtype
from ..checks import require, scalar_of
from ..registry import Construction, Kernel, kernel
from .dataset import Dataset, Element, ElementSpec, Source, carrying_dataset


class ElementsIterator(Source):
    """The elements of a list."""

    __slots__ = ("_elements", "_next")

    def __init__(self, elements: Sequence[Element]) -> None:
        self._elements = elements
        self._next = 0

    def take(self) -> Element | None:
        if self._next == len(self._elements):
            return None
        self._next += 1
        return self._elements[self._next - 1]


@dataclass(frozen=True, slots=True, eq=False)
class ElementsDataset(Dataset):
    """The elements of a list."""

    elements: Sequence[Element]

    def iterator(self) -> ElementsIterator:
        return ElementsIterator(self.elements)

    def cardinality(self) -> int:
        return len(self.elements)


@kernel("TensorDataset")
def tensor_dataset(node: Construction) -> Kernel:
    """One element: the inputs."""
    form = ElementSpec.of(node)
    return lambda *components: carrying_dataset(ElementsDataset(form, (tuple(map(np.asarray, components)),)))


@kernel("ListDataset")
def list_dataset(node: Construction) -> Kernel:
    """An element for each run of as many inputs as an element has components."""
    form = ElementSpec.of(node)
    width = len(form.types)

    def make(*components: Array) -> Array:
        arrays = tuple(map(np.asarray, components))
        elements = [arrays[first : first + width] for first in range(0, len(arrays), width)]
        return carrying_dataset(ElementsDataset(form, elements))

    return make


class _SlicesIterator(Source):
    __slots__ = ("_components", "_count", "_next")

    def __init__(self, components: Element, count: int) -> None:
        self._components = components
        self._count = count
        self._next = 0

    def take(self) -> Element | None:
        row = self._next
        if row == self._count:
            return None
        self._next += 1
        return tuple([component[row, ...] for component in self._components])


@dataclass(frozen=True, slots=True, eq=False)
class SlicesDataset(Dataset):
    """The rows of tensors with equally many rows."""

    components: Element

    def iterator(self) -> _SlicesIterator:
        return _SlicesIterator(self.components, self.cardinality())

    def cardinality(self) -> int:
        return len(self.components[0])


@kernel("TensorSliceDataset")
def tensor_slice_dataset(node: Construction) -> Kernel:
    """An element for each row of the inputs."""
    form = ElementSpec.of(node)

    def make(*components: Array) -> Array:
        require(
            all(np.ndim(component) > 0 for component in components),
            "All components must be at least 1-dimensional",
        )
        require(
            len({len(component) for component in components}) == 1,
            "All components must have the same size in the 0th dimension",
        )
        return carrying_dataset(SlicesDataset(form, components))

    return make


class _RangeIterator(Source):
    __slots__ = ("_dtype", "_numbers")

    def __init__(self, numbers: range, dtype: np.dtype[np.generic]) -> None:
        self._numbers = iter(numbers)
        self._dtype = dtype

    def take(self) -> Element | None:
        number = next(self._numbers, None)
        return None if number is None else (np.array(number, self._dtype),)


@dataclass(frozen=True, slots=True, eq=False)
class _RangeDataset(Dataset):
    numbers: range

    def iterator(self) -> _RangeIterator:
        return _RangeIterator(self.numbers, numpy_dtype(self.form.types[0]))

    def cardinality(self) -> int:
        return len(self.numbers)


@kernel("RangeDataset")
def range_dataset(node: Construction) -> Kernel:
    """The numbers from `start` to before `stop`, in steps."""
    form = ElementSpec.of(node)

    def make(start: Array, stop: Array, step: Array) -> Array:
        first, last, distance = scalar_of(start, "start"), scalar_of(stop, "stop"), scalar_of(step, "step")
        require(distance != 0, "step must be a non-zero integer.")
        return carrying_dataset(_RangeDataset(form, range(first, last, distance)))

    return make


class _SparseRowsIterator(Source):
    """The rows of a sparse tensor: of each the indices behind the first, the values, and the shape of a row."""

    __slots__ = ("_bounds", "_indices", "_next", "_shape", "_values")

    def __init__(self, indices: Array, values: Array, shape: Array) -> None:
        self._indices = indices
        self._values = values
        self._shape = shape[1:]
        self._bounds = np.searchsorted(indices[:, 0], np.arange(int(shape[0]) + 1)).tolist()
        self._next = 0

    def take(self) -> Element | None:
        if self._next == len(self._bounds) - 1:
            return None
        rows = slice(self._bounds[self._next], self._bounds[self._next + 1])
        self._next += 1
        return self._indices[rows, 1:], self._values[rows], self._shape


@dataclass(frozen=True, slots=True, eq=False)
class _SparseRowsDataset(Dataset):
    indices: Array
    values: Array
    shape: Array

    def iterator(self) -> _SparseRowsIterator:
        return _SparseRowsIterator(self.indices, self.values, self.shape)

    def cardinality(self) -> int:
        return int(self.shape[0])


@kernel("SparseTensorSliceDataset")
def sparse_tensor_slice_dataset(node: Construction) -> Kernel:
    """An element for each row of a sparse tensor whose indices are ordered."""
    dtype = node.attrs["Tvalues"]

    def make(indices: Array, values: Array, shape: Array) -> Array:
        _check_sparse(indices, values, shape)
        rank = len(shape) - 1
        form = ElementSpec((DataType.INT64, dtype, DataType.INT64), ((None, rank), (None,), (rank,)))
        return carrying_dataset(_SparseRowsDataset(form, indices, values, shape))

    return make


def _check_sparse(indices: Array, values: Array, shape: Array) -> None:
    require(indices.ndim == 2, "Input indices must be a matrix.")
    require(values.ndim == 1, "Input values must be a vector.")
    require(shape.ndim == 1, "Input shape must be a vector.")
    require(len(indices) == len(values), "Number of values must match first dimension of indices.")
    require(indices.shape[1] == len(shape), "Number of dimensions must match second dimension of indices.")
    require(len(shape) > 0, "The shape argument requires at least one element.")
    batches = indices[:, 0]
    if (batches[1:] < batches[:-1]).any():
        raise UnimplementedError(
            "The SparseTensor must be ordered in the batch dimension; handling arbitrarily "
            "ordered input is not currently supported."
        )
    if len(batches) and (batches[0] < 0 or batches[-1] >= shape[0]):
        raise InvalidArgumentError("the indices are out of the bounds of the first dimension of the sparse tensor")
