"""Datasets that remember: Cache in memory, Unique; and IgnoreErrors, which forgets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....errors import InvalidArgumentError, PartitaError, UnimplementedError
from ....graph.dtypes import Array, DataType
from ..carried import carrying
from ..registry import Construction, Kernel, kernel
from .dataset import UNKNOWN, Dataset, Element, Form, Iterator, Steps
from .sources import ElementsIterator
from .transformation import Transformed, transforming


class MemoryCache:
    """All elements of a dataset, once an iterator has reached its end."""

    __slots__ = ("elements",)

    def __init__(self) -> None:
        self.elements: list[Element] | None = None


class _CacheIterator(Iterator):
    """Reads the cache, if it is complete at the first element; otherwise reads the source and fills the cache."""

    __slots__ = ("_cache", "_chosen", "_dataset", "_taken")

    def __init__(self, dataset: _Cache) -> None:
        self._dataset = dataset
        self._cache = dataset.cache
        self._chosen: Iterator | None = None
        self._taken: list[Element] | None = None

    def next(self) -> Steps[Element | None]:
        """As `Iterator.next`."""
        if self._chosen is None:
            self._choose()
        assert self._chosen is not None  # `_choose` sets it
        element = yield from self._chosen.next()
        if self._taken is not None:
            if element is not None:
                self._taken.append(element)
            else:
                self._cache.elements, self._taken = self._taken, None
        return element

    def _choose(self) -> None:
        if self._cache.elements is None:
            self._chosen, self._taken = self._dataset.source.iterator(), []
        else:
            self._chosen = ElementsIterator(self._cache.elements)


@dataclass(frozen=True, slots=True, eq=False)
class _Cache(Transformed):
    cache: MemoryCache

    def iterator(self) -> Iterator:
        return _CacheIterator(self)


@kernel("CacheDataset", "CacheDatasetV2")
def cache_dataset(node: Construction) -> Kernel:
    """The same elements; those after the first pass come from memory."""

    def make(form: Form, source: Dataset, file: Array, *handle: Array) -> Dataset:
        name = np.asarray(file).item()
        if name:
            raise UnimplementedError(f"a cache in a file ({name!r}); let the name be empty to cache in memory")
        shared = handle[0].item() if handle else None
        return _Cache(form, source, shared if isinstance(shared, MemoryCache) else MemoryCache())

    return transforming(node, make)


@kernel("AnonymousMemoryCache")
def anonymous_memory_cache(node: Construction) -> Kernel:
    """An empty cache, and what deletes it."""

    def make() -> tuple[Array, Array]:
        value = carrying(MemoryCache())
        return value, value

    return make


class _UniqueIterator(Iterator):
    __slots__ = ("_seen", "_source")

    def __init__(self, source: Iterator) -> None:
        self._source = source
        self._seen: set[object] = set()

    def next(self) -> Steps[Element | None]:
        """As `Iterator.next`."""
        while (element := (yield from self._source.next())) is not None:
            (value,) = element
            key = (value.shape, *value.ravel().tolist()) if value.dtype == object else (value.shape, value.tobytes())
            if key not in self._seen:
                self._seen.add(key)
                return element
            yield None
        return None


@dataclass(frozen=True, slots=True, eq=False)
class _Unique(Transformed):
    def iterator(self) -> Iterator:
        return _UniqueIterator(self.source.iterator())

    def cardinality(self) -> int:
        return UNKNOWN


@kernel("UniqueDataset", "ExperimentalUniqueDataset")
def unique(node: Construction) -> Kernel:
    """The elements that no earlier one equals, of one component of int32, int64 or string."""

    def make(form: Form, source: Dataset) -> Dataset:
        if len(source.form.types) != 1 or source.form.types[0] not in (DataType.INT32, DataType.INT64, DataType.STRING):
            raise InvalidArgumentError(
                "UniqueDataset only supports inputs with a single `tf.int32`, `tf.int64`, or `tf.string` component."
            )
        return _Unique(form, source)

    return transforming(node, make)


class _IgnoringIterator(Iterator):
    __slots__ = ("_source",)

    def __init__(self, source: Iterator) -> None:
        self._source = source

    def next(self) -> Steps[Element | None]:
        """As `Iterator.next`."""
        while True:
            try:
                return (yield from self._source.next())
            except PartitaError:
                yield None


@dataclass(frozen=True, slots=True, eq=False)
class _Ignoring(Transformed):
    def iterator(self) -> Iterator:
        return _IgnoringIterator(self.source.iterator())

    def cardinality(self) -> int:
        return UNKNOWN


@kernel("IgnoreErrorsDataset", "ExperimentalIgnoreErrorsDataset")
def ignore_errors(node: Construction) -> Kernel:
    """The elements that can be computed."""
    return transforming(node, _Ignoring)
