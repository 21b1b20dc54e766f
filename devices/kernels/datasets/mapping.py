"""Datasets made with functions of single elements: Map, Filter, TakeWhile, Scan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ....errors import InvalidArgumentError, OutOfRangeError
from ....graph.dtypes import Array
from ..checks import require
from ..registry import Construction, Kernel, kernel
from .dataset import UNKNOWN, CapturedFunction, Dataset, Element, ElementSpec, Iterator, PullSteps
from .transformation import Transformed, count_of, mapping, transforming


class _MapIterator(Iterator):
    __slots__ = ("_function", "_keeps_cardinality", "_source")

    def __init__(self, source: Iterator, function: CapturedFunction, *, keeps_cardinality: bool) -> None:
        self._source = source
        self._function = function
        self._keeps_cardinality = keeps_cardinality

    def next(self) -> PullSteps[Element | None]:
        """As `Iterator.next`."""
        element = yield from self._source.next()
        if element is None:
            return None
        try:
            return (yield from self._function(*element))
        except OutOfRangeError as error:
            raise_unless_end(error, keeps_cardinality=self._keeps_cardinality)
            return None


def raise_unless_end(error: OutOfRangeError, *, keeps_cardinality: bool) -> None:
    """An OutOfRangeError of a function ends the sequence, unless that must have an element for each of its source."""
    if keeps_cardinality:
        raise InvalidArgumentError(f"Function invocation produced OutOfRangeError: {error.message}") from error


@dataclass(frozen=True, slots=True, eq=False)
class Map(Transformed):
    """The results of a function of each element."""

    function: CapturedFunction
    keeps_cardinality: bool

    def iterator(self) -> Iterator:
        return _MapIterator(self.source.iterator(), self.function, keeps_cardinality=self.keeps_cardinality)

    def cardinality(self) -> int:
        return self.source.cardinality() if self.keeps_cardinality else UNKNOWN


@kernel("MapDataset", "ParallelMapDataset", "ParallelMapDatasetV2", "ExperimentalMapDataset")
def map_dataset(node: Construction) -> Kernel:
    """The results of a function of each element, in the order of the elements."""
    keeps = bool(node.attrs["preserve_cardinality"])

    def make(form: ElementSpec, source: Dataset, function: CapturedFunction, *parallel: Array) -> Dataset:
        check_parallel(*parallel)
        return Map(form, source, function, keeps)

    return mapping(node, make)


def check_parallel(*num_parallel_calls: Array) -> None:
    """InvalidArgumentError unless the number is positive, or -1 for TensorFlow's choice; calls run one by one."""
    for number in map(count_of, num_parallel_calls):
        require(number > 0 or number == -1, "num_parallel_calls must be greater than zero.")


class _FilterIterator(Iterator):
    __slots__ = ("_function", "_source")

    def __init__(self, source: Iterator, function: CapturedFunction) -> None:
        self._source = source
        self._function = function

    def next(self) -> PullSteps[Element | None]:
        """As `Iterator.next`."""
        while (element := (yield from self._source.next())) is not None:
            if _truth((yield from self._function(*element)), "Filter predicate `f` must return a scalar bool."):
                return element
            yield None
        return None


def _truth(results: Element, message: str) -> bool:
    require(len(results) == 1 and results[0].dtype == np.bool_ and results[0].ndim == 0, message)
    return bool(results[0])


@dataclass(frozen=True, slots=True, eq=False)
class _Filter(Transformed):
    function: CapturedFunction

    def iterator(self) -> Iterator:
        return _FilterIterator(self.source.iterator(), self.function)

    def cardinality(self) -> int:
        return UNKNOWN


@kernel("FilterDataset", "ParallelFilterDataset")
def filter_dataset(node: Construction) -> Kernel:
    """The elements of which a function is true."""

    def make(form: ElementSpec, source: Dataset, function: CapturedFunction, *parallel: Array) -> Dataset:
        check_parallel(*parallel)
        return _Filter(form, source, function)

    return mapping(node, make, "predicate")


class _TakeWhileIterator(Iterator):
    __slots__ = ("_function", "_has_ended", "_source")

    def __init__(self, source: Iterator, function: CapturedFunction) -> None:
        self._source = source
        self._function = function
        self._has_ended = False

    def next(self) -> PullSteps[Element | None]:
        """As `Iterator.next`."""
        element = None if self._has_ended else (yield from self._source.next())
        if element is not None:
            results = yield from self._function(*element)
            if _truth(results, "`predicate` must returns a scalar bool tensor."):
                return element
        self._has_ended = True
        return None


@dataclass(frozen=True, slots=True, eq=False)
class _TakeWhile(Transformed):
    function: CapturedFunction

    def iterator(self) -> Iterator:
        return _TakeWhileIterator(self.source.iterator(), self.function)

    def cardinality(self) -> int:
        return UNKNOWN


@kernel("TakeWhileDataset", "ExperimentalTakeWhileDataset")
def take_while(node: Construction) -> Kernel:
    """The elements before the first one of which a function is false."""
    return mapping(node, _TakeWhile, "predicate")


class _ScanIterator(Iterator):
    __slots__ = ("_function", "_keeps_cardinality", "_source", "_state")

    def __init__(
        self, source: Iterator, state: Element, function: CapturedFunction, *, keeps_cardinality: bool
    ) -> None:
        self._source = source
        self._state = state
        self._function = function
        self._keeps_cardinality = keeps_cardinality

    def next(self) -> PullSteps[Element | None]:
        """As `Iterator.next`."""
        element = yield from self._source.next()
        if element is None:
            return None
        try:
            results = yield from self._function(*self._state, *element)
        except OutOfRangeError as error:
            raise_unless_end(error, keeps_cardinality=self._keeps_cardinality)
            return None
        count = len(self._state)
        self._state = results[:count]
        return results[count:]


@dataclass(frozen=True, slots=True, eq=False)
class _Scan(Transformed):
    state: Element
    function: CapturedFunction
    keeps_cardinality: bool

    def iterator(self) -> Iterator:
        return _ScanIterator(
            self.source.iterator(), self.state, self.function, keeps_cardinality=self.keeps_cardinality
        )

    def cardinality(self) -> int:
        return self.source.cardinality() if self.keeps_cardinality else UNKNOWN


@kernel("ScanDataset", "ExperimentalScanDataset")
def scan(node: Construction) -> Kernel:
    """What a function of a state and an element outputs behind the next state, for each element."""
    num_states, keeps = len(node.attrs["Tstate"]), bool(node.attrs["preserve_cardinality"])
    function = node.function("f")

    def make(form: ElementSpec, source: Dataset, *others: Any) -> Dataset:
        state = tuple(map(np.asarray, others[:num_states]))
        return _Scan(form, source, state, CapturedFunction(function, others[num_states:]), keeps)

    return transforming(node, make)
