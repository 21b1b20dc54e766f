"""Several checkpoints made one, without copying their data.

Flows in: prefixes of checkpoints, such as the devices of a step have written them, and the prefix they are to have
together. Flows out: their data files under new names, and one index. Always holds: until the merged checkpoint is there
for good, the ones that are merged are, and so is the one that it replaces; parts of one tensor may be spread over the
checkpoints.

A data file has both names for a time, its old one and the one in the merged checkpoint. Where the file system has no
second names, or the two places are not on one disk, it is copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from ...errors import AbortedError, InvalidArgumentError, NotFoundError, PartitaError
from .bundle_index import BundleIndex, Entries, data_file, index_file
from .bundle_update import BundleUpdate, sweep
from .file_system import LOCAL, FileSystem
from .slice_keys import SLICE_MARK, decode_name
from .storage import NewFile, folder_of


def merge_bundles(
    prefixes: Sequence[str],
    destination: str,
    *,
    delete_old_directories: bool = False,
    allow_missing: bool = False,
    files: FileSystem = LOCAL,
) -> None:
    """Makes one checkpoint of what all of them hold, then removes them.

    The folders they were in are removed if asked for and empty. Raises InvalidArgumentError for a tensor that two of
    them hold, for a missing checkpoint unless those are allowed, and where there is none at all; AbortedError where one
    of them is saved meanwhile, and the error of the file system.
    """
    indices = _opened(prefixes, files, allow_missing=allow_missing)
    shards = [sorted({entry.shard_id for _, entry in index.entries() if not entry.slices}) for index in indices]
    sources = [
        data_file(index.prefix, shard, index.num_shards)
        for index, its_shards in zip(indices, shards, strict=True)
        for shard in its_shards
    ]
    with BundleUpdate(destination, files) as update:
        try:
            update.place([partial(NewFile.linked, source, files=files) for source in sources])
        except NotFoundError:
            _check_unchanged(indices)
            raise
        merged: Entries = {}
        first = update.first_shard
        for index, its_shards in zip(indices, shards, strict=True):
            _add(merged, index, {old: new for new, old in enumerate(its_shards, first)})
            first += len(its_shards)
        _check_unchanged(indices)
        update.publish(merged)
    for index in indices:
        _remove(index, files)
    if delete_old_directories:
        for folder in {folder_of(index.prefix) for index in indices} - {folder_of(destination)}:
            with suppress(OSError):  # whoever keeps other files there keeps the folder
                files.remove_folder(folder)


def _check_unchanged(indices: Sequence[BundleIndex]) -> None:
    """AbortedError unless the data files that have been linked are those that the indices name."""
    for index in indices:
        if not index.is_current():
            raise AbortedError(f"checkpoint {index.prefix!r} was saved while it was being merged; merge it again")


def _remove(index: BundleIndex, files: FileSystem) -> None:
    """Removes a checkpoint that has been merged, but not one that has its name by now: the merged one itself, maybe."""
    with suppress(OSError, PartitaError):
        if index.is_current():
            files.remove(index_file(index.prefix))
            sweep(index.prefix, files)


def _opened(prefixes: Sequence[str], files: FileSystem, *, allow_missing: bool) -> list[BundleIndex]:
    indices = []
    for prefix in prefixes:
        try:
            indices.append(BundleIndex(prefix, files))
        except NotFoundError as error:
            if not allow_missing:
                raise InvalidArgumentError(
                    f"allow_missing_files was set to false and {prefix} did not exist.NOT_FOUND: {prefix} not found"
                ) from error
    if not indices:
        raise InvalidArgumentError("At least one prefix checkpoint file must exist, but none existed.")
    return indices


def _add(merged: Entries, index: BundleIndex, numbers: dict[int, int]) -> None:
    """Adds what a checkpoint holds, the numbers of its data files replaced by new ones."""
    for key, entry in index.entries():
        before = merged.get(key)
        if before is None:
            # The entry of a tensor in parts lies nowhere: any of the numbers will do.
            entry.shard_id = numbers.get(entry.shard_id, min(numbers.values(), default=0))
            merged[key] = entry
        elif entry.slices and before.slices and (entry.dtype, entry.shape) == (before.dtype, before.shape):
            before.slices.extend(entry.slices)
        else:
            name = decode_name(key.removeprefix(SLICE_MARK))
            raise InvalidArgumentError(
                f"Duplicate tensor keyed by {name} encountered, when merging prefix: {index.prefix}"
            )
