"""Datasets with some elements of others, in their order: Take, Skip, Repeat, Shard, Concatenate, Zip, Prefetch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ....errors import FailedPreconditionError, PartitaError
from ....graph.dtypes import Array
from ..checks import require
from ..registry import Construction, Kernel, kernel
from .dataset import INFINITE, UNKNOWN, Dataset, Element, ElementSpec, Iterator, PullSteps, carrying_dataset, dataset_of
from .transformation import Transformed, Unchanged, count_of, transforming


class _TakeIterator(Iterator):
    __slots__ = ("_left", "_source")

    def __init__(self, source: Iterator, count: int) -> None:
        self._source = source
        self._left = count

    def next(self) -> PullSteps[Element | None]:
        """As `Iterator.next`."""
        if not self._left:
            return None
        element = yield from self._source.next()
        self._left = 0 if element is None else self._left - 1
        return element


@dataclass(frozen=True, slots=True, eq=False)
class _Take(Transformed):
    count: int

    def iterator(self) -> Iterator:
        return self.source.iterator() if self.count < 0 else _TakeIterator(self.source.iterator(), self.count)

    def cardinality(self) -> int:
        known = self.source.cardinality()
        if self.count < 0:
            return known
        if known == UNKNOWN:
            return UNKNOWN if self.count else 0
        return self.count if known == INFINITE else min(known, self.count)


@kernel("TakeDataset")
def take(node: Construction) -> Kernel:
    """The first `count` elements; with a negative count all."""
    return transforming(node, lambda form, source, count: _Take(form, source, count_of(count)))


def _passed_over(source: Iterator, count: int) -> PullSteps[bool]:
    """Pulls so many elements; returns whether there were as many.

    As in TensorFlow, elements that were passed over before an error do not count.
    """
    for _ in range(count):
        if (yield from source.next()) is None:
            return False
        yield None
    return True


class _SkipIterator(Iterator):
    __slots__ = ("_left", "_source")

    def __init__(self, source: Iterator, count: int) -> None:
        self._source = source
        self._left = count

    def next(self) -> PullSteps[Element | None]:
        """As `Iterator.next`."""
        if self._left:
            yield from _passed_over(self._source, self._left)
            self._left = 0
        return (yield from self._source.next())


class _NoElements(Iterator):
    __slots__ = ()

    def next(self) -> PullSteps[Element | None]:
        """As `Iterator.next`."""
        yield from ()
        return None


@dataclass(frozen=True, slots=True, eq=False)
class _Skip(Transformed):
    count: int

    def iterator(self) -> Iterator:
        return _NoElements() if self.count < 0 else _SkipIterator(self.source.iterator(), self.count)

    def cardinality(self) -> int:
        known = self.source.cardinality()
        if self.count < 0:
            return 0
        return known if known < 0 else max(known - self.count, 0)


@kernel("SkipDataset")
def skip(node: Construction) -> Kernel:
    """All but the first `count` elements; with a negative count none."""
    return transforming(node, lambda form, source, count: _Skip(form, source, count_of(count)))


class RepeatIterator(Iterator):
    """Goes through sequences one after the other, `count` times (-1: until one is empty); `begin` begins one."""

    __slots__ = ("_begin", "_current", "_is_empty", "_left")

    def __init__(self, begin: Callable[[], Iterator], count: int) -> None:
        self._begin = begin
        self._left = count
        self._current: Iterator | None = None
        self._is_empty = True

    def next(self) -> PullSteps[Element | None]:
        """As `Iterator.next`."""
        while self._left:
            if self._current is None:
                self._current, self._is_empty = self._begin(), True
            element = yield from self._current.next()
            if element is not None:
                self._is_empty = False
                return element
            self._current = None
            if self._left > 0:
                self._left -= 1
            elif self._is_empty:
                self._left = 0
            yield None
        return None


@dataclass(frozen=True, slots=True, eq=False)
class _Repeat(Transformed):
    count: int

    def iterator(self) -> Iterator:
        return RepeatIterator(self.source.iterator, max(self.count, INFINITE))

    def cardinality(self) -> int:
        return repeated(self.source.cardinality(), self.count)


def repeated(known: int, count: int) -> int:
    """The cardinality of a dataset of cardinality `known` that is repeated."""
    if count == 0 or known == 0:
        return 0
    if count < 0:
        return UNKNOWN if known == UNKNOWN else INFINITE
    return known if known < 0 else known * count


@kernel("RepeatDataset")
def repeat(node: Construction) -> Kernel:
    """The elements `count` times over; with a negative count without end, unless there are none."""
    return transforming(node, lambda form, source, count: _Repeat(form, source, count_of(count)))


class _ShardIterator(Iterator):
    __slots__ = ("_num_shards", "_skip", "_source")

    def __init__(self, source: Iterator, num_shards: int, index: int) -> None:
        self._source = source
        self._num_shards = num_shards
        self._skip = index

    def next(self) -> PullSteps[Element | None]:
        """As `Iterator.next`."""
        if not (yield from _passed_over(self._source, self._skip)):
            return None
        self._skip = 0
        element = yield from self._source.next()
        if element is not None:
            self._skip = self._num_shards - 1
        return element


@dataclass(frozen=True, slots=True, eq=False)
class _Shard(Transformed):
    num_shards: int
    index: int

    def iterator(self) -> Iterator:
        return _ShardIterator(self.source.iterator(), self.num_shards, self.index)

    def cardinality(self) -> int:
        known = self.source.cardinality()
        return known if known < 0 else (known - self.index + self.num_shards - 1) // self.num_shards


@kernel("ShardDataset")
def shard(node: Construction) -> Kernel:
    """Every `num_shards`-th element, from number `index` on."""

    def make(form: ElementSpec, source: Dataset, shards: Array, index: Array) -> Dataset:
        count, number = count_of(shards), count_of(index)
        require(count > 0, f"Number of shards must be greater than zero (currently num_shards = {count}).")
        require(0 <= number < count, f"Index must be between 0 and {count - 1} (currently index = {number}).")
        return _Shard(form, source, count, number)

    return transforming(node, make)


class _ConcatenateIterator(Iterator):
    __slots__ = ("_current", "_following")

    def __init__(self, first: Iterator, second: Dataset) -> None:
        self._current = first
        self._following: Dataset | None = second

    def next(self) -> PullSteps[Element | None]:
        """As `Iterator.next`."""
        element = yield from self._current.next()
        if element is None and self._following is not None:
            self._current, self._following = self._following.iterator(), None
            element = yield from self._current.next()
        return element


@dataclass(frozen=True, slots=True, eq=False)
class _Concatenate(Transformed):
    following: Dataset

    def iterator(self) -> Iterator:
        return _ConcatenateIterator(self.source.iterator(), self.following)

    def cardinality(self) -> int:
        known = self.source.cardinality(), self.following.cardinality()
        if INFINITE in known:
            return INFINITE
        return UNKNOWN if UNKNOWN in known else sum(known)


@kernel("ConcatenateDataset")
def concatenate(node: Construction) -> Kernel:
    """The elements of one dataset, then those of another."""
    return transforming(node, lambda form, source, other: _Concatenate(form, source, dataset_of(other)))


class _ZipIterator(Iterator):
    __slots__ = ("_sources",)

    def __init__(self, sources: Sequence[Iterator]) -> None:
        self._sources = sources

    def next(self) -> PullSteps[Element | None]:
        """As `Iterator.next`."""
        components: list[Array] = []
        error: PartitaError | None = None
        for source in self._sources:
            try:
                element = yield from source.next()
            except PartitaError as raised:
                error = error or raised  # the others are pulled all the same: they stay in step
                continue
            if element is None:
                return None
            components += element
        if error is not None:
            raise error
        return tuple(components)


@dataclass(frozen=True, slots=True, eq=False)
class _Zip(Dataset):
    sources: Sequence[Dataset]

    def iterator(self) -> Iterator:
        return _ZipIterator([source.iterator() for source in self.sources])

    def cardinality(self) -> int:
        known = [source.cardinality() for source in self.sources]
        counts = [count for count in known if count != INFINITE]
        if UNKNOWN in counts:
            return UNKNOWN
        return min(counts, default=INFINITE)


@kernel("ZipDataset")
def zip_datasets(node: Construction) -> Kernel:
    """Elements with the components of the elements of all inputs."""
    form = ElementSpec.of(node)
    return lambda *sources: carrying_dataset(_Zip(form, [dataset_of(source) for source in sources]))


@kernel("PrefetchDataset")
def prefetch(node: Construction) -> Kernel:
    """The same elements. None is computed before it is asked for, so only the time differs from TensorFlow's."""

    def make(form: ElementSpec, source: Dataset, size: Array) -> Dataset:
        require(count_of(size) >= -1, "buffer_size must be >= 0 or set buffer_size to be -1 for auto-tuning")
        return Unchanged(form, source)

    return transforming(node, make)


@kernel(
    "ModelDataset",
    "FinalizeDataset",
    "OptimizeDataset",
    "OptimizeDatasetV2",
    "RewriteDataset",
    "NonSerializableDataset",
    "ExperimentalNonSerializableDataset",
    "MaxIntraOpParallelismDataset",
    "ExperimentalMaxIntraOpParallelismDataset",
    "PrivateThreadPoolDataset",
    "ExperimentalPrivateThreadPoolDataset",
    "ThreadPoolDataset",
    "ExperimentalThreadPoolDataset",
    "LatencyStatsDataset",
    "ExperimentalLatencyStatsDataset",
    "BytesProducedStatsDataset",
    "ExperimentalBytesProducedStatsDataset",
)
def same_elements(node: Construction) -> Kernel:
    """The same elements: the op only says how TensorFlow should compute them, or what it should measure."""
    return transforming(node, lambda form, source, *_others: Unchanged(form, source))


@dataclass(frozen=True, slots=True, eq=False)
class _WithOptions(Unchanged):
    serialised: bytes

    def options(self) -> bytes:
        return self.serialised


@kernel("OptionsDataset")
def options(node: Construction) -> Kernel:
    """The same elements; only GetOptions reads the options."""
    serialised: bytes = node.attrs["serialized_options"]
    return transforming(node, lambda form, source: _WithOptions(form, source, serialised))


class _CountingIterator(Iterator):
    """Raises if there are more or fewer elements than promised."""

    __slots__ = ("_count", "_promised", "_source")

    def __init__(self, source: Iterator, promised: int) -> None:
        self._source = source
        self._promised = promised
        self._count = 0

    def next(self) -> PullSteps[Element | None]:
        """As `Iterator.next`."""
        element = yield from self._source.next()
        if element is not None:
            self._count += 1
        promised, expected = self._promised, "Input dataset was expected to contain"
        if promised >= 0 and self._count > promised:
            raise FailedPreconditionError(
                f"{expected} {_elements(promised)} but contained at least {_elements(self._count)}."
            )
        if promised == INFINITE and element is None:
            raise FailedPreconditionError(
                f"{expected} an infinite number of elements but contained only {_elements(self._count)}."
            )
        if element is None and promised >= 0 and self._count < promised:
            raise FailedPreconditionError(
                f"{expected} {_elements(promised)} but contained only {_elements(self._count)}."
            )
        return element


def _elements(count: int) -> str:
    return f"{count} element{'' if count == 1 else 's'}"


@dataclass(frozen=True, slots=True, eq=False)
class _Promised(Transformed):
    promised: int

    def iterator(self) -> Iterator:
        return _CountingIterator(self.source.iterator(), self.promised)

    def cardinality(self) -> int:
        return self.promised


@kernel("AssertCardinalityDataset")
def assert_cardinality(node: Construction) -> Kernel:
    """The same elements; FailedPreconditionError if there are not as many as promised."""
    return transforming(node, lambda form, source, count: _Promised(form, source, count_of(count)))
