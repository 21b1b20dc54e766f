"""Datasets with a state that functions make and change: generators, and reductions by key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....errors import OutOfRangeError
from ....graph.dtypes import Array
from ..checks import require
from ..registry import Construction, Kernel, kernel
from .dataset import UNKNOWN, CapturedFunction, Dataset, Element, ElementSpec, Iterator, PullSteps, carrying_dataset
from .transformation import Transformed, transforming


def captured_functions(
    node: Construction, names: Sequence[str], types: str, captured: Sequence[Any]
) -> list[CapturedFunction]:
    """The functions of several attrs; `types` names the attrs with the types of their captures: "T{}_args"."""
    functions, first = [], 0
    for name in names:
        count = len(node.attrs[types.format(name)])
        functions.append(CapturedFunction(node.function(name), tuple(captured[first : first + count])))
        first += count
    return functions


class _GeneratorIterator(Iterator):
    __slots__ = ("_dataset", "_has_ended", "_state")

    def __init__(self, dataset: _Generator) -> None:
        self._dataset = dataset
        self._state: Element | None = None
        self._has_ended = False

    def next(self) -> PullSteps[Element | None]:
        """As `Iterator.next`."""
        if self._has_ended:
            return None
        if self._state is None:
            self._state = yield from self._dataset.begin()
        try:
            return (yield from self._dataset.advance(*self._state))
        except OutOfRangeError:
            self._has_ended = True
        yield from self._dataset.end(*self._state)
        return None


@dataclass(frozen=True, slots=True, eq=False)
class _Generator(Dataset):
    begin: CapturedFunction
    advance: CapturedFunction
    end: CapturedFunction

    def iterator(self) -> Iterator:
        return _GeneratorIterator(self)

    def cardinality(self) -> int:
        return UNKNOWN


@kernel("GeneratorDataset")
def generator_dataset(node: Construction) -> Kernel:
    """What a function of a state gives until it raises OutOfRangeError; others make the state and end it."""
    form, names = ElementSpec.of(node), ("init_func", "next_func", "finalize_func")
    return lambda *captured: carrying_dataset(_Generator(form, *captured_functions(node, names, "T{}_args", captured)))


class _ReducedIterator(Iterator):
    """Reduces all elements by key at the first pull; then gives the final states in the order of the keys."""

    __slots__ = ("_dataset", "_keys", "_source", "_states")

    def __init__(self, dataset: _GroupByReducer) -> None:
        self._dataset = dataset
        self._source = dataset.source.iterator()
        self._states: dict[int, Element] = {}
        self._keys: list[int] | None = None

    def next(self) -> PullSteps[Element | None]:
        """As `Iterator.next`."""
        while self._keys is None:
            element = yield from self._source.next()
            if element is None:
                self._keys = sorted(self._states, reverse=True)
            else:
                yield from self._reduce(element)
            yield None
        if not self._keys:
            return None
        return (yield from self._dataset.finish(*self._states.pop(self._keys.pop())))

    def _reduce(self, element: Element) -> PullSteps[None]:
        key = yield from scalar_of(self._dataset.key(*element), "key_func")
        if key not in self._states:
            self._states[key] = yield from self._dataset.begin(np.array(key, np.int64))
        self._states[key] = yield from self._dataset.reduce(*self._states[key], *element)


def scalar_of(call: PullSteps[Element], what: str) -> PullSteps[int]:
    """The result of a function, a scalar of int64; `what` names the function in the error for another one."""
    results = yield from call
    require(
        len(results) == 1 and results[0].ndim == 0 and results[0].dtype == np.int64,
        f"`{what}` must return a scalar int64.",
    )
    return int(results[0])


@dataclass(frozen=True, slots=True, eq=False)
class _GroupByReducer(Transformed):
    key: CapturedFunction
    begin: CapturedFunction
    reduce: CapturedFunction
    finish: CapturedFunction

    def iterator(self) -> Iterator:
        return _ReducedIterator(self)

    def cardinality(self) -> int:
        return UNKNOWN


@kernel("GroupByReducerDataset", "ExperimentalGroupByReducerDataset")
def group_by_reducer(node: Construction) -> Kernel:
    """What functions make of all elements with the same key, one element for each."""
    names = ("key_func", "init_func", "reduce_func", "finalize_func")

    def make(form: ElementSpec, source: Dataset, *captured: Array) -> Dataset:
        return _GroupByReducer(form, source, *captured_functions(node, names, "T{}_other_arguments", captured))

    return transforming(node, make)
