"""Datasets that remember: Cache, Unique; and IgnoreErrors, which forgets.

A cache in files is a checkpoint with a tensor per component of each element, as TensorFlow writes it:

    PREFIX.index, PREFIX.data-00000-of-00001      the tensors "      0_0", "      0_1", "      1_0", ...
    PREFIX_0.lockfile                             while an iterator is writing

The first iterator that comes writes; the files are in place once it has reached the end, and are read from then on. One
that is dropped before leaves nothing.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from weakref import finalize

from ....errors import AlreadyExistsError, CancelledError, InvalidArgumentError, PartitaError
from ....graph.dtypes import Array, DataType
from ....graph.formats.bundle_index import index_file
from ....graph.formats.bundle_reader import BundleReader
from ....graph.formats.bundle_writer import BundleWriter
from ....graph.formats.storage import file_errors
from ..carried import carrying
from ..checks import text_of
from ..registry import Construction, Kernel, kernel
from .dataset import UNKNOWN, Dataset, Element, ElementSpec, Iterator, PullSteps, Source
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

    def next(self) -> PullSteps[Element | None]:
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


_WIDTH = 7  # letters of the number of an element


def _name(element: int, component: int, num_components: int) -> str:
    """The name of a tensor; numbers are filled up with blanks, so that their order is that of the elements."""
    return f"{element:{_WIDTH}d}_{component:{len(str(num_components))}d}"


class _Reading(Source):
    """Reads a complete cache."""

    __slots__ = ("_form", "_number", "_reader")

    def __init__(self, prefix: str, form: ElementSpec) -> None:
        self._reader = BundleReader(prefix)
        self._form = form
        self._number = 0

    def take(self) -> Element | None:
        """As `Source.take`."""
        count = len(self._form.types)
        names = [_name(self._number, component, count) for component in range(count)]
        if not names or names[0] not in self._reader:
            return None
        self._number += 1
        return tuple([self._reader.read(name) for name in names])


class _Lock:
    """The lock file of a writer; AlreadyExistsError if there is one."""

    def __init__(self, prefix: str) -> None:
        self._path = Path(f"{prefix}_0.lockfile")
        try:
            with file_errors(str(self._path)), self._path.open("x") as file:
                file.write(f"Created at: {int(time.time())}")
        except AlreadyExistsError:
            raise AlreadyExistsError(self._refusal()) from None

    def _refusal(self) -> str:
        content = ""
        with suppress(OSError):
            content = self._path.read_text(errors="replace")
        return (
            f"There appears to be a concurrent caching iterator running - cache lockfile already exists "
            f"('{self._path}'). If you are sure no other running TF computations are using this cache prefix, delete "
            f"the lockfile and re-initialize the iterator. Lockfile contents: {content}"
        )

    def release(self) -> None:
        """Removes the file."""
        with suppress(OSError):
            self._path.unlink()


def _abandon(writer: BundleWriter, lock: _Lock) -> None:
    """Ends a cache that is not complete."""
    error = CancelledError("the iterator is gone")
    try:
        writer.__exit__(type(error), error, None)
    finally:
        lock.release()


class _Writing(Iterator):
    """Gives the elements of the source, and writes them."""

    __slots__ = ("__weakref__", "_abandon", "_count", "_form", "_lock", "_number", "_source", "_writer")

    def __init__(self, source: Iterator, prefix: str, form: ElementSpec) -> None:
        self._source, self._form = source, form
        self._lock = _Lock(prefix)
        self._writer = BundleWriter(prefix).__enter__()
        self._abandon = finalize(self, _abandon, self._writer, self._lock)
        self._number = 0

    def next(self) -> PullSteps[Element | None]:
        """As `Iterator.next`."""
        element = yield from self._source.next()
        if not self._abandon.alive:
            return element
        if element is None:
            self._abandon.detach()
            try:
                self._writer.__exit__(None, None, None)
            finally:
                self._lock.release()
            return None
        for component, (value, dtype) in enumerate(zip(element, self._form.types, strict=True)):
            self._writer.add(_name(self._number, component, len(element)), value, dtype)
        self._number += 1
        return element


class _FileCacheIterator(Iterator):
    """Reads the files if they are complete at the first element; otherwise writes them."""

    __slots__ = ("_chosen", "_dataset")

    def __init__(self, dataset: _FileCache) -> None:
        self._dataset = dataset
        self._chosen: Iterator | None = None

    def next(self) -> PullSteps[Element | None]:
        """As `Iterator.next`."""
        if self._chosen is None:
            prefix, form = self._dataset.prefix, self._dataset.form
            is_complete = Path(index_file(prefix)).exists()
            self._chosen = (
                _Reading(prefix, form) if is_complete else _Writing(self._dataset.source.iterator(), prefix, form)
            )
        return (yield from self._chosen.next())


@dataclass(frozen=True, slots=True, eq=False)
class _FileCache(Transformed):
    """The same elements, which the files with this prefix keep."""

    prefix: str

    def iterator(self) -> Iterator:
        """As `Dataset.iterator`."""
        return _FileCacheIterator(self)


@kernel("CacheDataset", "CacheDatasetV2")
def cache_dataset(node: Construction) -> Kernel:
    """The same elements; those after the first pass come from memory, or from files if they have a name."""

    def make(form: ElementSpec, source: Dataset, file: Array, *handle: Array) -> Dataset:
        name = text_of(file, "filename")
        if name:
            return _FileCache(form, source, os.fsdecode(name))
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

    def next(self) -> PullSteps[Element | None]:
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

    def make(form: ElementSpec, source: Dataset) -> Dataset:
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

    def next(self) -> PullSteps[Element | None]:
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
