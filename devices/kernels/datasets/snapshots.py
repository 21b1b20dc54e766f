"""Snapshots of datasets: SnapshotDataset writes its first complete pass to files and reads these from then on.

They are read by later iterators of the same session. Those of another session, whose functions may have been others
under the same names, are not.

A run belongs to a dataset by its fingerprint: datasets with different descriptions have different ones, within one
session. A description is a tree: classes, forms, numbers, tensors, names of functions and captured values. Bodies of
functions are not looked at, since a session has one body for each name. Of anything else, a generator for one, the
class counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, is_dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path, PurePath
from types import FunctionType
from typing import Any

import numpy as np

from ....graph.dtypes import Array
from ...state import DEFAULT_CONTAINER
from ..functions import NamedFunction
from ..registry import Construction, Kernel, kernel
from .dataset import CapturedFunction, Dataset, Element, ElementSpec, Iterator, PullSteps, carrying_dataset, dataset_of
from .saving import NewRun, ShardReading, WritingIterator, compression_of, folder_of, runs_of
from .transformation import Transformed

_COMPLETED = DEFAULT_CONTAINER, "snapshots", "complete runs"


@dataclass(slots=True)
class _Completed:
    """The complete runs of a session, by folder."""

    runs: dict[Path, str] = field(default_factory=dict)


class _SnapshotIterator(Iterator):
    """Reads the run that is complete at the first element; otherwise writes one."""

    __slots__ = ("_chosen", "_dataset")

    def __init__(self, dataset: _Snapshot) -> None:
        self._dataset = dataset
        self._chosen: Iterator | None = None

    def next(self) -> PullSteps[Element | None]:
        """As `Iterator.next`."""
        if self._chosen is None:
            self._chosen = yield from self._choice()
        return (yield from self._chosen.next())

    def _choice(self) -> PullSteps[Iterator]:
        dataset, folder, runs = self._dataset, self._dataset.reading.folder, self._dataset.completed.runs
        if folder in runs:
            return (yield from dataset.reading.iterator_of(runs[folder]))
        return WritingIterator(dataset.source.iterator(), dataset.run_of(folder), partial(runs.__setitem__, folder))


@dataclass(frozen=True, slots=True, eq=False)
class _Snapshot(Transformed):
    run_of: NewRun
    reading: ShardReading
    completed: _Completed

    def iterator(self) -> Iterator:
        return _SnapshotIterator(self)


@kernel("SnapshotDatasetV2")
def snapshot_dataset(node: Construction) -> Kernel:
    """The elements of another dataset, from its first complete pass on out of files."""
    form, runs, function = ElementSpec.of(node), runs_of(node), node.function("reader_func")
    num_captured, state, compression = len(node.attrs["Treader_func_args"]), node.state, compression_of(node)

    def make(variant: Array, path: Array, *captured: Any) -> Array:
        source = dataset_of(variant)
        folder = folder_of(path) / _fingerprint(source)
        reading = ShardReading(folder, compression, form, CapturedFunction(function, captured[:num_captured]))
        completed = state.resource(_COMPLETED, _Completed)
        return carrying_dataset(_Snapshot(form, source, runs(form, captured[num_captured:]), reading, completed))

    return make


def _fingerprint(dataset: Dataset) -> str:
    """A number of 64 bits, in decimal digits."""
    digest = blake2b(digest_size=8)
    _add(dataset, digest.update, set())
    return str(int.from_bytes(digest.digest(), "little"))


# The parts of a description are of any type.
def _add(value: Any, update: Callable[[bytes], object], above: set[int]) -> None:
    """Adds a value and what it has; a value inside of itself counts by its class."""
    update(b"%s(" % type(value).__qualname__.encode())
    if isinstance(value, np.ndarray | np.generic):
        _add_tensor(np.asarray(value), update)
    elif isinstance(value, str | bytes | int | float | PurePath) or value is None:
        update(repr(value).encode())
    elif id(value) not in above:
        for part in _parts(value):
            _add(part, update, above | {id(value)})
    update(b")")


def _add_tensor(tensor: Array, update: Callable[[bytes], object]) -> None:
    update(f"{tensor.dtype} {tensor.shape} ".encode())
    if tensor.dtype != object:
        update(tensor.tobytes())
        return
    for element in tensor.reshape(-1).tolist():
        update(repr(element).encode() if isinstance(element, bytes) else type(element).__qualname__.encode())


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return [part for item in value.items() for part in item]
    if isinstance(value, tuple | list):
        return value
    if isinstance(value, FunctionType):
        return [value.__qualname__, *(cell.cell_contents for cell in value.__closure__ or ())]
    if isinstance(value, NamedFunction):
        return [value.function.name, str(value.function)]
    return [getattr(value, each.name) for each in fields(value)] if is_dataclass(value) else []
