"""Snapshots of datasets: SnapshotDataset writes its first complete pass to files and reads these from then on.

They are read by later iterators of the same session. Those of another session, whose functions may have been others
under the same names, are not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ....graph.dtypes import Array
from ...state import DEFAULT_CONTAINER
from ..registry import Construction, Kernel, kernel
from .dataset import CapturedFunction, Element, Form, Iterator, Steps, carrying_dataset, dataset_of
from .fingerprints import fingerprint
from .saving import NewRun, Reading, WritingIterator, compression_of, folder_of, runs_of
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

    def next(self) -> Steps[Element | None]:
        """As `Iterator.next`."""
        if self._chosen is None:
            self._chosen = yield from self._choice()
        return (yield from self._chosen.next())

    def _choice(self) -> Steps[Iterator]:
        dataset, folder, runs = self._dataset, self._dataset.reading.folder, self._dataset.completed.runs
        if folder in runs:
            return (yield from dataset.reading.iterator_of(runs[folder]))
        return WritingIterator(dataset.source.iterator(), dataset.run_of(folder), partial(runs.__setitem__, folder))


@dataclass(frozen=True, slots=True, eq=False)
class _Snapshot(Transformed):
    run_of: NewRun
    reading: Reading
    completed: _Completed

    def iterator(self) -> Iterator:
        return _SnapshotIterator(self)


@kernel("SnapshotDatasetV2")
def snapshot_dataset(node: Construction) -> Kernel:
    """The elements of another dataset, from its first complete pass on out of files."""
    form, runs, function = Form.of(node), runs_of(node), node.function("reader_func")
    num_captured, state, compression = len(node.attrs["Treader_func_args"]), node.state, compression_of(node)

    def make(variant: Array, path: Array, *captured: Any) -> Array:
        source = dataset_of(variant)
        folder = folder_of(path) / fingerprint(source)
        reading = Reading(folder, compression, form, CapturedFunction(function, captured[:num_captured]))
        completed = state.resource(_COMPLETED, _Completed)
        return carrying_dataset(_Snapshot(form, source, runs(form, captured[num_captured:]), reading, completed))

    return make
