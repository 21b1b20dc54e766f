"""Datasets whose elements come from several datasets: FlatMap, Interleave, the choice among given ones.

An interleaving goes round `cycle_length` places, each with an open dataset or none, and takes `block_length` elements
at a place. TensorFlow's parallel versions give the same order unless they are sloppy; here they are computed in turn.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.dtypes import Array
from ..checks import require
from ..registry import Construction, Kernel, kernel
from .dataset import (
    UNKNOWN,
    CapturedFunction,
    Dataset,
    Element,
    ElementSpec,
    Iterator,
    PullSteps,
    carrying_dataset,
    dataset_of,
)
from .generating import captured_functions, scalar_of
from .mapping import check_parallel
from .sources import ElementsDataset
from .transformation import Transformed, count_of, mapping, transforming


class _InterleaveIterator(Iterator):
    __slots__ = ("_block", "_block_length", "_function", "_has_ended", "_open", "_place", "_source")

    def __init__(self, source: Iterator, function: CapturedFunction, cycle_length: int, block_length: int) -> None:
        self._source = source
        self._function = function
        self._open: list[Iterator | None] = [None] * cycle_length
        self._block_length = block_length
        self._place = self._block = 0
        self._has_ended = False

    def next(self) -> PullSteps[Element | None]:
        """As `Iterator.next`."""
        while not self._has_ended or any(self._open):
            current = self._open[self._place]
            if current is None:
                if self._has_ended:
                    self._advance(self._block)
                else:
                    yield from self._open_next()
                continue
            element = yield from current.next()
            if element is not None:
                self._block += 1
                if self._block == self._block_length:
                    self._advance()
                return element
            yield from self._close()
            yield None
        return None

    def _advance(self, block: int = 0) -> None:
        """Goes to the next place, with so many elements of the block taken."""
        self._place, self._block = (self._place + 1) % len(self._open), block

    def _close(self) -> PullSteps[None]:
        """The dataset at the present place has ended."""
        yield from ()
        self._open[self._place] = None
        self._advance()

    def _open_next(self) -> PullSteps[None]:
        """Opens the dataset that the function makes of the next element, at the present place."""
        element = yield from self._source.next()
        if element is None:
            self._has_ended = True
        else:
            self._open[self._place] = (yield from inner_dataset(self._function, *element)).iterator()


def inner_dataset(function: CapturedFunction, *arguments: Array) -> PullSteps[Dataset]:
    """The dataset that a function gives; InvalidArgumentError if it gives something else."""
    results = yield from function(*arguments)
    require(len(results) == 1 and results[0].ndim == 0, "Function must return a single scalar of dtype DT_VARIANT.")
    return dataset_of(results[0])


@dataclass(frozen=True, slots=True, eq=False)
class _Interleave(Transformed):
    function: CapturedFunction
    cycle_length: int = 1
    block_length: int = 1
    is_legacy: bool = False

    def iterator(self) -> Iterator:
        kind = _LegacyInterleaveIterator if self.is_legacy else _InterleaveIterator
        return kind(self.source.iterator(), self.function, self.cycle_length, self.block_length)

    def cardinality(self) -> int:
        return UNKNOWN


@kernel("FlatMapDataset")
def flat_map(node: Construction) -> Kernel:
    """The elements of the dataset that a function makes of each element, one dataset after the other."""
    return mapping(node, _Interleave)


def _interleaved(
    form: ElementSpec, source: Dataset, function: CapturedFunction, cycle: Array, block: Array, *parallel: Array
) -> _Interleave:
    cycle_length, block_length = count_of(cycle), count_of(block)
    check_parallel(*parallel)
    if cycle_length == -1:
        cycle_length = _chosen_cycle(*map(count_of, parallel))
    require(cycle_length > 0, "cycle_length must be greater than zero.")
    require(block_length > 0, "block_length must be greater than zero.")
    return _Interleave(form, source, function, cycle_length, block_length)


@kernel("InterleaveDataset")
def interleave(node: Construction) -> Kernel:
    """The elements of the datasets that a function makes of each element, some datasets at a time."""
    return mapping(node, _interleaved)


@kernel("ParallelInterleaveDatasetV2", "ParallelInterleaveDatasetV3", "ParallelInterleaveDatasetV4")
def parallel_interleave(node: Construction) -> Kernel:
    """As `interleave`; the last input is how many calls TensorFlow would run at a time."""

    def make(form: ElementSpec, source: Dataset, function: CapturedFunction, *others: Array) -> Dataset:
        length = count_of(others[0])
        require(
            length > 0 or length == -1, f"`cycle_length` must be `tf.data.AUTOTUNE` or greater than 0 but is {length}"
        )
        return _interleaved(form, source, function, *others[:2], others[-1])

    return mapping(node, make)


@kernel("ParallelInterleaveDataset", "ExperimentalParallelInterleaveDataset", "LegacyParallelInterleaveDatasetV2")
def legacy_interleave(node: Construction) -> Kernel:
    """As `interleave`, in the order of tf.data.experimental.parallel_interleave."""

    def make(form: ElementSpec, source: Dataset, function: CapturedFunction, *others: Array) -> Dataset:
        return replace(_interleaved(form, source, function, *others[:2]), is_legacy=True)

    return mapping(node, make)


def _chosen_cycle(num_parallel_calls: int | None = None) -> int:
    """The cycle length that TensorFlow chooses on this machine: it depends on the number of cores."""
    cores = len(os.sched_getaffinity(0))
    if num_parallel_calls is None:
        return cores
    return -(-cores // 3) if num_parallel_calls < 0 else min(num_parallel_calls, cores)


class _LegacyInterleaveIterator(_InterleaveIterator):
    """Opens all places at the beginning, and each again when its dataset has ended.

    A dataset that nothing follows leaves the rest of its block to the next place.
    """

    __slots__ = ("_has_begun",)

    def __init__(self, source: Iterator, function: CapturedFunction, cycle_length: int, block_length: int) -> None:
        super().__init__(source, function, cycle_length, block_length)
        self._has_begun = False

    def next(self) -> PullSteps[Element | None]:
        """As `Iterator.next`."""
        if not self._has_begun:
            self._has_begun = True
            for _ in self._open:
                if not self._has_ended:
                    yield from self._open_next()
                self._advance()
        return (yield from super().next())

    def _close(self) -> PullSteps[None]:
        block, self._open[self._place] = self._block, None
        if not self._has_ended:
            yield from self._open_next()
        is_followed = self._open[self._place] is not None
        self._advance(0 if is_followed else block)


class _DirectedIterator(Iterator):
    """Takes each element from the source that the selector names; sources that have ended are passed over."""

    __slots__ = ("_selector", "_sources", "_stops")

    def __init__(self, selector: Iterator, sources: Sequence[Iterator], *, stops: bool) -> None:
        self._selector = selector
        self._sources: list[Iterator | None] = list(sources)
        self._stops = stops

    def next(self) -> PullSteps[Element | None]:
        """As `Iterator.next`."""
        while any(self._sources):
            selected = yield from self._selector.next()
            if selected is None:
                break
            number = count_of(selected[0])
            if not 0 <= number < len(self._sources):
                raise InvalidArgumentError(f"Selector index out of range: {number} >= {len(self._sources)}")
            source = self._sources[number]
            if source is not None:
                element = yield from source.next()
                if element is not None:
                    return element
                self._sources[number] = None
                if self._stops:
                    break
            yield None
        self._sources = [None] * len(self._sources)
        return None


@dataclass(frozen=True, slots=True, eq=False)
class _Directed(Dataset):
    selector: Dataset
    sources: Sequence[Dataset]
    stops: bool

    def iterator(self) -> Iterator:
        sources = [source.iterator() for source in self.sources]
        return _DirectedIterator(self.selector.iterator(), sources, stops=self.stops)

    def cardinality(self) -> int:
        return UNKNOWN


@kernel("DirectedInterleaveDataset", "ExperimentalDirectedInterleaveDataset")
def directed_interleave(node: Construction) -> Kernel:
    """Each element from the input that an element of the first input numbers."""
    form, stops = ElementSpec.of(node), bool(node.attrs.get("stop_on_empty_dataset", False))

    def make(selector: Array, *sources: Array) -> Array:
        return carrying_dataset(_Directed(form, dataset_of(selector), [dataset_of(s) for s in sources], stops))

    return make


class _GroupIterator(Iterator):
    """Collects elements by key, and gives those of the dataset that a function makes of each full window."""

    __slots__ = ("_current", "_dataset", "_groups", "_has_ended", "_sizes", "_source")

    def __init__(self, dataset: _GroupByWindow) -> None:
        self._dataset = dataset
        self._source = dataset.source.iterator()
        self._groups: dict[int, list[Element]] = {}
        self._sizes: dict[int, int] = {}
        self._current: Iterator | None = None
        self._has_ended = False

    def next(self) -> PullSteps[Element | None]:
        """As `Iterator.next`."""
        while True:
            if self._current is not None:
                element = yield from self._current.next()
                if element is not None:
                    return element
                self._current = None
            if self._has_ended and not self._groups:
                return None
            key = yield from self._full_group()
            if key is not None:
                yield from self._open(key)
            yield None

    def _full_group(self) -> PullSteps[int | None]:
        """Takes an element; returns the key of a group that is full, or, at the end, of any group."""
        if self._has_ended:
            return min(self._groups)
        element = yield from self._source.next()
        if element is None:
            self._has_ended = True
            return None
        key = yield from scalar_of(self._dataset.key_function(*element), "key_func")
        if key not in self._sizes:
            size = yield from scalar_of(self._dataset.size_function(np.array(key, np.int64)), "window_size_func")
            require(size > 0, f"Window size must be greater than zero, but got {size}.")
            self._sizes[key] = size
        group = self._groups.setdefault(key, [])
        group.append(element)
        return key if len(group) == self._sizes[key] else None

    def _open(self, key: int) -> PullSteps[None]:
        window = carrying_dataset(ElementsDataset(self._dataset.source.form, self._groups.pop(key)))
        del self._sizes[key]
        arguments = np.array(key, np.int64), window
        self._current = (yield from inner_dataset(self._dataset.reduce_function, *arguments)).iterator()


@dataclass(frozen=True, slots=True, eq=False)
class _GroupByWindow(Transformed):
    key_function: CapturedFunction
    reduce_function: CapturedFunction
    size_function: CapturedFunction

    def iterator(self) -> Iterator:
        return _GroupIterator(self)

    def cardinality(self) -> int:
        return UNKNOWN


@kernel("GroupByWindowDataset", "ExperimentalGroupByWindowDataset")
def group_by_window(node: Construction) -> Kernel:
    """What a function makes of the elements of each key, as soon as there are as many as a window has."""
    names = ("key_func", "reduce_func", "window_size_func")

    def make(form: ElementSpec, source: Dataset, *captured: Array) -> Dataset:
        return _GroupByWindow(form, source, *captured_functions(node, names, "T{}_other_arguments", captured))

    return transforming(node, make)
