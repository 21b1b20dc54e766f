"""Datasets in files: SaveDataset writes one, LoadDataset reads it.

A function gives the shard of each element when it is written. When it is read, another one makes a dataset of the
datasets of the shards, mostly by interleaving them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from ....errors import DataLossError, InvalidArgumentError, NotFoundError, UnimplementedError
from ....graph.dtypes import Array, DataType
from ....graph.formats.snapshot_files import METADATA, Metadata, ShardWriter, records_of, shard_folder, shards
from ....graph.tensor import parse_tensor, tensor_to_numpy
from ..checks import require, text_of
from ..registry import Call, Construction, Kernel, Start, deferred_kernel, kernel
from ..sparse.serialized_sparse import serialized_tensor
from .dataset import (
    UNKNOWN,
    CapturedFunction,
    Dataset,
    Element,
    ElementSpec,
    Iterator,
    PullSteps,
    Source,
    carrying_dataset,
    dataset_of,
)
from .pulling import compute
from .sources import ElementsDataset
from .transformation import Transformed

_COMPRESSIONS = {b"": b"", b"NONE": b"", b"GZIP": b"GZIP", b"SNAPPY": b"SNAPPY", b"AUTO": b"SNAPPY"}


def compression_of(node: Construction) -> bytes:
    """The compression that a node asks for; InvalidArgumentError for an unknown one."""
    name = node.attrs["compression"]
    require(name in _COMPRESSIONS, f"Unsupported compression type {name.decode(errors='replace')!r}.")
    return _COMPRESSIONS[name]


class RunWriter:
    """Writes elements to the shards that a function chooses, or to the first one."""

    def __init__(self, folder: Path, form: ElementSpec, compression: bytes, function: CapturedFunction | None) -> None:
        if DataType.VARIANT in form.types:
            raise UnimplementedError("a dataset of variants in a file; save one of tensors")
        self._folder = folder
        self._form = form
        self._compression = compression
        self._function = function
        self._name = str(uuid4().int >> 64)
        self._writers: dict[int, ShardWriter] = {}
        self._count = 0

    def write(self, element: Element) -> PullSteps[None]:
        """Adds an element."""
        shard = 0
        if self._function is not None:
            results = yield from self._function(*element)
            is_number = len(results) == 1 and results[0].dtype == np.int64 and results[0].size == 1
            require(is_number, "`shard_func` must return a scalar int64.")
            shard = int(results[0].item())
        writer = self._writers.get(shard)
        if writer is None:
            folder = shard_folder(self._folder, self._name, shard)
            writer = self._writers[shard] = ShardWriter(folder, self._compression)
        writer.write([serialized_tensor(part, kind) for part, kind in zip(element, self._form.types, strict=True)])
        self._count += 1

    def finish(self) -> str:
        """Writes what is left, and that the run is complete; returns its name."""
        for writer in self._writers.values():
            writer.close()
        self._folder.mkdir(parents=True, exist_ok=True)
        metadata = Metadata(self._name, self._form.types, self._count, is_final=True)
        (self._folder / METADATA).write_bytes(metadata.serialised())
        return self._name


NewRun = Callable[[Path], RunWriter]
"""begins a run in a folder"""


class _ShardIterator(Source):
    """The elements of one shard, whose files are read at the first one."""

    __slots__ = ("_dataset", "_next", "_records")

    def __init__(self, dataset: _Shard) -> None:
        self._dataset = dataset
        self._records: list[bytes] | None = None
        self._next = 0

    def take(self) -> Element | None:
        """As `Source.take`."""
        if self._records is None:
            self._records = records_of(self._dataset.folder, self._dataset.compression)
        width = len(self._dataset.form.types)
        records = self._records[self._next : self._next + width]
        if len(records) < width:
            return None
        self._next += width
        return tuple(map(_tensor, records, self._dataset.form.types))


def _tensor(record: bytes, dtype: DataType) -> Array:
    message = parse_tensor(record)
    if DataType(message.dtype) != dtype:
        raise DataLossError("an element of a snapshot has components of other types than the dataset")
    return tensor_to_numpy(message)


@dataclass(frozen=True, slots=True, eq=False)
class _Shard(Dataset):
    folder: Path
    compression: bytes

    def iterator(self) -> _ShardIterator:
        return _ShardIterator(self)

    def cardinality(self) -> int:
        return UNKNOWN


@dataclass(frozen=True, slots=True, eq=False)
class ShardReading:
    """How the shards of a run become one dataset."""

    folder: Path
    compression: bytes
    form: ElementSpec
    function: CapturedFunction

    def iterator_of(self, run: str) -> PullSteps[Iterator]:
        """An iterator over what the function makes of the datasets of the shards."""
        parts = [_Shard(self.form, shard, self.compression) for shard in shards(self.folder, run)]
        form = ElementSpec((DataType.VARIANT,), ((),))
        elements = [(carrying_dataset(part),) for part in parts]
        (dataset,) = yield from self.function(carrying_dataset(ElementsDataset(form, elements)))
        return dataset_of(dataset).iterator()


class _LoadIterator(Iterator):
    __slots__ = ("_dataset", "_iterator")

    def __init__(self, dataset: _Load) -> None:
        self._dataset = dataset
        self._iterator: Iterator | None = None

    def next(self) -> PullSteps[Element | None]:
        """As `Iterator.next`."""
        if self._iterator is None:
            self._iterator = yield from self._dataset.reading.iterator_of(self._dataset.metadata.run)
        return (yield from self._iterator.next())


@dataclass(frozen=True, slots=True, eq=False)
class _Load(Dataset):
    metadata: Metadata
    reading: ShardReading

    def iterator(self) -> _LoadIterator:
        return _LoadIterator(self)

    def cardinality(self) -> int:
        return self.metadata.num_elements


@kernel("LoadDataset")
def load_dataset(node: Construction) -> Kernel:
    """The elements that a complete run of SaveDataset has written."""
    form, compression, function = ElementSpec.of(node), compression_of(node), node.function("reader_func")

    def make(path: Array, *captured: Any) -> Array:
        folder = folder_of(path)
        try:
            metadata = Metadata.parse((folder / METADATA).read_bytes())
        except FileNotFoundError:
            raise NotFoundError(f"Could not find metadata file [{folder}]") from None
        if metadata.types != form.types:
            raise InvalidArgumentError(f"the dataset in {str(folder)!r} has components of other types")
        reading = ShardReading(folder, compression, form, CapturedFunction(function, captured))
        return carrying_dataset(_Load(form, metadata, reading))

    return make


def folder_of(path: Array) -> Path:
    """The folder that a scalar of strings names."""
    name = os.fsdecode(text_of(path, "path"))
    require("\0" not in name, f"the name {name!r} of a folder holds a null byte")
    return Path(name)


@deferred_kernel("SaveDataset")
def save_dataset(node: Construction) -> Start:
    """Writes all elements of a dataset."""
    runs = runs_of(node)

    def start(call: Call, variant: Array, path: Array, *captured: Any) -> None:
        dataset = dataset_of(variant)
        run = runs(dataset.form, captured)(folder_of(path))
        compute(call, _saved(dataset, run), lambda _: call.done(), node.op)

    return start


def runs_of(node: Construction) -> Callable[[ElementSpec, Sequence[Any]], NewRun]:
    """A function from a form and captured values to what begins runs of the node."""
    compression = compression_of(node)
    function = node.function("shard_func") if node.attrs.get("use_shard_func", True) else None

    def runs(form: ElementSpec, captured: Sequence[Any]) -> NewRun:
        chooses = None if function is None else CapturedFunction(function, tuple(captured))
        return lambda folder: RunWriter(folder, form, compression, chooses)

    return runs


def _saved(dataset: Dataset, run: RunWriter) -> PullSteps[None]:
    iterator = dataset.iterator()
    while (element := (yield from iterator.next())) is not None:
        yield from run.write(element)
        yield None
    run.finish()


class WritingIterator(Iterator):
    """Passes elements on and writes them; `ended` gets the name of the run once it is complete."""

    __slots__ = ("_ended", "_has_ended", "_pending", "_run", "_source")

    def __init__(self, source: Iterator, run: RunWriter, ended: Callable[[str], None]) -> None:
        self._source = source
        self._run = run
        self._ended = ended
        self._has_ended = False

    def next(self) -> PullSteps[Element | None]:
        """As `Iterator.next`."""
        element = None if self._has_ended else (yield from self._source.next())
        if element is not None:
            yield from self._run.write(element)
        elif not self._has_ended:
            self._has_ended = True
            self._ended(self._run.finish())
        return element


@dataclass(frozen=True, slots=True, eq=False)
class _SavedOnTheWay(Transformed):
    folder: Path
    run_of: NewRun

    def iterator(self) -> Iterator:
        return WritingIterator(self.source.iterator(), self.run_of(self.folder), lambda _: None)


@kernel("SaveDatasetV2")
def save_dataset_v2(node: Construction) -> Kernel:
    """The same elements; an iterator that has come to their end has saved them."""
    form, runs = ElementSpec.of(node), runs_of(node)

    def make(variant: Array, path: Array, *captured: Any) -> Array:
        source, folder = dataset_of(variant), folder_of(path)
        return carrying_dataset(_SavedOnTheWay(form, source, folder, runs(form, captured)))

    return make
