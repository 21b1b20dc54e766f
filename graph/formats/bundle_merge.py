"""Merges several checkpoints into one, without copying their data.

The data files, which the devices of a step may have written, get new names under the merged prefix, and one new index
lists their tensors; slices of one tensor may be in different checkpoints. A data file has both names for a time; where
hard links are not possible it is copied. The merged checkpoint is synced to disk before the old ones, or one that it
replaces, are removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from ...errors import AbortedError, InvalidArgumentError, NotFoundError, PartitaError
from .bundle_index import BundleEntries, BundleIndex, data_file
from .bundle_update import BundleUpdate, retire
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
    """Merges the checkpoints at `prefixes` into `destination`, then removes them.

    Their folders are removed if `delete_old_directories` and empty. Raises InvalidArgumentError for a tensor in two
    checkpoints, for a missing checkpoint unless `allow_missing`, and if there is none at all; AbortedError if one of
    them is saved during the merge, and file system errors.
    """
    indices = _opened(prefixes, files, allow_missing=allow_missing)
    shards = [index.shards() for index in indices]
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
        merged: BundleEntries = {}
        first = update.first_shard
        for index, its_shards in zip(indices, shards, strict=True):
            _add(merged, index, {old: new for new, old in enumerate(its_shards, first)})
            first += len(its_shards)
        _check_unchanged(indices)
        update.publish(merged)
    for index in indices:
        with suppress(OSError, PartitaError):
            retire(index, files)
    if delete_old_directories:
        for folder in {folder_of(index.prefix) for index in indices} - {folder_of(destination)}:
            with suppress(OSError):  # a folder with other files stays
                files.remove_folder(folder)


def _check_unchanged(indices: Sequence[BundleIndex]) -> None:
    """AbortedError unless the linked data files are still those that the indices name."""
    for index in indices:
        if not index.is_current():
            raise AbortedError(f"checkpoint {index.prefix!r} was saved while it was being merged; merge it again")


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


def _add(merged: BundleEntries, index: BundleIndex, numbers: dict[int, int]) -> None:
    """Adds the entries of a checkpoint, with the new numbers of its data files."""
    for key, entry in index.entries():
        before = merged.get(key)
        if before is None:
            # The entry of a sliced tensor has no data of its own, so any number is right.
            entry.shard_id = numbers.get(entry.shard_id, min(numbers.values(), default=0))
            merged[key] = entry
        elif entry.slices and before.slices and (entry.dtype, entry.shape) == (before.dtype, before.shape):
            before.slices.extend(entry.slices)
        else:
            name = decode_name(key.removeprefix(SLICE_MARK))
            raise InvalidArgumentError(
                f"Duplicate tensor keyed by {name} encountered, when merging prefix: {index.prefix}"
            )
