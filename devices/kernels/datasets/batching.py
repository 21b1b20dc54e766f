"""Datasets whose elements are several elements of others in one, or several parts of one: batches and rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....errors import DataLossError, InvalidArgumentError, PartitaError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..checks import require
from ..registry import Construction, Kernel, kernel
from .dataset import (
    INFINITE,
    UNKNOWN,
    CapturedFunction,
    Dataset,
    Element,
    ElementSpec,
    Iterator,
    PullSteps,
)
from .mapping import Map, check_parallel
from .transformation import Transformed, count_of, flag_of, mapping, transforming

Joined = Callable[[Sequence[Element]], Element]


class BatchIterator(Iterator):
    """Joins `size` elements; at the end fewer, unless `drops` the rest.

    An error loses the elements of its batch that were taken; with `fails_whole` the others of the batch as well.
    """

    __slots__ = ("_drops", "_fails_whole", "_joined", "_size", "_source")

    def __init__(self, source: Iterator, size: int, joined: Joined, *, drops: bool, fails_whole: bool = False) -> None:
        self._source = source
        self._size = size
        self._joined = joined
        self._drops = drops
        self._fails_whole = fails_whole

    def next(self) -> PullSteps[Element | None]:
        """As `Iterator.next`."""
        elements: list[Element] = []
        error: PartitaError | None = None
        for _ in range(self._size):
            try:
                element = yield from self._source.next()
            except PartitaError as raised:
                if not self._fails_whole:
                    raise
                error = error or raised
                continue
            if element is None:
                break
            elements.append(element)
            yield None
        if error is not None:
            raise error
        if not elements or (self._drops and len(elements) < self._size):
            return None
        return self._joined(elements)


def stacked(elements: Sequence[Element]) -> Element:
    """Elements of equal shapes in one; InvalidArgumentError for different ones."""
    columns = list(zip(*elements, strict=True))
    for index, column in enumerate(columns):
        row = _misfit(column)
        if row is not None:
            first, other = shape_text(column[0].shape), shape_text(column[row].shape)
            raise InvalidArgumentError(
                f"Cannot batch tensors with different shapes in component {index}. First element had shape "
                f"{first} and element {row} had shape {other}."
            )
    return tuple([np.stack(column) for column in columns])


def _stacked_results(elements: Sequence[Element]) -> Element:
    """As `stacked`, with the message of MapAndBatchDataset."""
    for column in zip(*elements, strict=True):
        row = _misfit(column)
        if row is not None:
            batch, other = shape_text(column[0].shape), shape_text(column[row].shape)
            raise InvalidArgumentError(
                "Cannot add tensor to the batch: number of elements does not match. "
                f"Shapes are: [tensor]: {other}, [batch]: {batch}"
            )
    return stacked(elements)


def _misfit(column: Sequence[Array]) -> int | None:
    """The first array whose shape is not that of the first one."""
    shape = column[0].shape
    return next((row for row, array in enumerate(column) if array.shape != shape), None)


@dataclass(frozen=True, slots=True, eq=False)
class Batch(Transformed):
    """Every `size` elements in one."""

    size: int
    drops: bool
    joined: Joined = stacked
    is_parallel: bool = False

    def iterator(self) -> Iterator:
        # TensorFlow makes a Map and the Batch behind it one MapAndBatch, in which an error is that of the whole batch.
        fails_whole = isinstance(self.source, Map) and not self.is_parallel
        source = self.source.iterator()
        return BatchIterator(source, self.size, self.joined, drops=self.drops, fails_whole=fails_whole)

    def cardinality(self) -> int:
        return num_batches(self.source.cardinality(), self.size, drops=self.drops)


def num_batches(cardinality: int, size: int, *, drops: bool) -> int:
    """The cardinality of batches of `size` elements."""
    return cardinality if cardinality < 0 else (cardinality + (0 if drops else size - 1)) // size


def _check_size(size: int) -> None:
    require(size > 0, "Batch size must be greater than zero.")


@kernel("BatchDataset", "BatchDatasetV2")
def batch(node: Construction) -> Kernel:
    """Every `batch_size` elements in one."""

    def make(form: ElementSpec, source: Dataset, size: Array, *drops: Array) -> Dataset:
        _check_size(count_of(size))
        return Batch(form, source, count_of(size), any(map(flag_of, drops)))

    return transforming(node, make)


@kernel("ParallelBatchDataset")
def parallel_batch(node: Construction) -> Kernel:
    """Every `batch_size` elements in one."""

    def make(form: ElementSpec, source: Dataset, size: Array, _parallel: Array, drops: Array) -> Dataset:
        _check_size(count_of(size))
        return Batch(form, source, count_of(size), flag_of(drops), is_parallel=True)

    return transforming(node, make)


@kernel("MapAndBatchDataset", "ExperimentalMapAndBatchDataset")
def map_and_batch(node: Construction) -> Kernel:
    """The results of a function of each element, every `batch_size` of them in one."""
    keeps = bool(node.attrs["preserve_cardinality"])

    def make(
        form: ElementSpec, source: Dataset, function: CapturedFunction, size: Array, parallel: Array, drops: Array
    ) -> Dataset:
        require(count_of(size) > 0, "batch_size must be greater than zero.")
        check_parallel(parallel)
        # Nobody asks for the form of the elements between the two.
        mapped = Map(form, source, function, keeps)
        return Batch(form, mapped, count_of(size), flag_of(drops), _stacked_results)

    return mapping(node, make)


@dataclass(frozen=True, slots=True, eq=False)
class _PaddedBatch(Transformed):
    size: int
    drops: bool
    shapes: Sequence[tuple[int, ...]]
    values: Sequence[Any]  # the padding of each component, a scalar of its type

    def iterator(self) -> Iterator:
        return BatchIterator(self.source.iterator(), self.size, self.joined, drops=self.drops)

    def cardinality(self) -> int:
        return num_batches(self.source.cardinality(), self.size, drops=self.drops)

    def joined(self, elements: Sequence[Element]) -> Element:
        columns = zip(zip(*elements, strict=True), self.shapes, self.values, strict=True)
        return tuple([_padded(index, *column) for index, column in enumerate(columns)])


def _padded(component: int, column: Sequence[Array], shape: tuple[int, ...], value: Any) -> Array:
    """Arrays in one, padded to `shape`, where -1 stands for the largest size among them."""
    for array in column:
        if array.ndim != len(shape):
            raise InvalidArgumentError(
                "All elements in a batch must have the same rank as the padded shape for component"
                f"{component}: expected rank {len(shape)} but got element with rank {array.ndim}"
            )
    largest = [max(array.shape[axis] for array in column) for axis in range(len(shape))]
    sizes = [most if size < 0 else size for size, most in zip(shape, largest, strict=True)]
    if any(size < most for size, most in zip(sizes, largest, strict=True)):
        raise DataLossError("Attempted to pad to a smaller size than the input element.")
    result = np.full((len(column), *sizes), value, column[0].dtype)
    for row, array in enumerate(column):
        place: tuple[Any, ...] = (row, *map(slice, array.shape), ...)  # Any: indices of several kinds
        result[place] = array
    return result


@kernel("PaddedBatchDataset", "PaddedBatchDatasetV2")
def padded_batch(node: Construction) -> Kernel:
    """Every `batch_size` elements in one, of the largest sizes among them or of given ones."""
    count = len(node.attrs["Toutput_types"])

    def make(form: ElementSpec, source: Dataset, size: Array, *others: Array) -> Dataset:
        _check_size(count_of(size))
        shapes, values, drops = others[:count], others[count : 2 * count], others[2 * count :]
        for index, shape in enumerate(shapes):
            require(shape.ndim == 1, "All padded shapes must be vectors")
            require(np.ndim(values[index]) == 0, "All padding values must be scalars")
        sizes = [tuple(shape.tolist()) for shape in shapes]
        padding = [np.asarray(value).item() if np.asarray(value).dtype == object else value for value in values]
        return _PaddedBatch(form, source, count_of(size), any(map(flag_of, drops)), sizes, padding)

    return transforming(node, make)


class _UnbatchIterator(Iterator):
    __slots__ = ("_batch", "_row", "_rows", "_source")

    def __init__(self, source: Iterator) -> None:
        self._source = source
        self._batch: Element = ()
        self._row = self._rows = 0

    def next(self) -> PullSteps[Element | None]:
        """As `Iterator.next`."""
        while self._row == self._rows:
            element = yield from self._source.next()
            if element is None:
                return None
            self._rows = _num_rows(element)
            self._batch, self._row = element, 0
            yield None
        self._row += 1
        return tuple([component[self._row - 1, ...] for component in self._batch])


def _num_rows(element: Element) -> int:
    for component in element:
        require(component.ndim > 0, "Input element must have a non-scalar value in each component.")
    for index, component in enumerate(element):
        require(
            len(component) == len(element[0]),
            "Input element must have the same batch size in each component. Component 0 had size "
            f"{len(element[0])} but component {index} had size, {len(component)}.",
        )
    return len(element[0])


@dataclass(frozen=True, slots=True, eq=False)
class _Unbatch(Transformed):
    def iterator(self) -> Iterator:
        return _UnbatchIterator(self.source.iterator())

    def cardinality(self) -> int:
        known, shapes = self.source.cardinality(), self.source.form.shapes
        size = shapes[0][0] if shapes and shapes[0] else None
        if known <= 0 and known != UNKNOWN:
            return known
        return UNKNOWN if known == UNKNOWN or size is None else known * size


@kernel("UnbatchDataset", "ExperimentalUnbatchDataset")
def unbatch(node: Construction) -> Kernel:
    """The rows of the elements."""
    return transforming(node, _Unbatch)


class _RebatchIterator(Iterator):
    """Rows of batches in batches of other sizes, which repeat; a size is asked for whole, or the rest at the end."""

    __slots__ = ("_dataset", "_number", "_parts", "_rows", "_source")

    def __init__(self, dataset: _Rebatch) -> None:
        self._dataset = dataset
        self._source = dataset.source.iterator()
        self._number = 0  # of batches that were given
        self._parts: list[Element] = []
        self._rows = 0  # in the parts together

    def next(self) -> PullSteps[Element | None]:
        """As `Iterator.next`."""
        sizes = self._dataset.sizes
        size = sizes[self._number % len(sizes)]
        while self._rows < size:
            element = yield from self._source.next()
            if element is None:
                break
            self._rows += _num_rows(element)
            self._parts.append(element)
            yield None
        if not self._rows or (self._dataset.drops and self._rows < size):
            self._parts, self._rows = [], 0
            return None
        whole = tuple([np.concatenate(column) for column in zip(*self._parts, strict=True)])
        self._number += 1
        self._rows -= min(size, self._rows)
        self._parts = [tuple(component[size:] for component in whole)] if self._rows else []
        return tuple(component[:size] for component in whole)


@dataclass(frozen=True, slots=True, eq=False)
class _Rebatch(Transformed):
    sizes: Sequence[int]
    drops: bool

    def iterator(self) -> Iterator:
        return _RebatchIterator(self)

    def cardinality(self) -> int:
        return self.source.cardinality() if self.source.cardinality() in (0, INFINITE) else UNKNOWN


@kernel("RebatchDatasetV2")
def rebatch(node: Construction) -> Kernel:
    """The rows of batches in batches of the given sizes, one after the other and again."""

    def make(form: ElementSpec, source: Dataset, sizes: Array, drops: Array) -> Dataset:
        require(sizes.ndim <= 1, "`batch_sizes` must be a scalar or a vector.")
        return _Rebatch(form, source, sizes.reshape(-1).tolist(), flag_of(drops))

    return transforming(node, make)
