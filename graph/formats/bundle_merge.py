"""Several checkpoints made one, without copying their data.

Flows in: prefixes of checkpoints, such as the devices of a step have written them, and the prefix they are to have
together. Flows out: their data files under new names, and one index. Always holds: nothing is renamed unless all
indices could be read and agree; parts of one tensor may be spread over the checkpoints.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ...errors import InvalidArgumentError, NotFoundError
from ..protos import BundleEntryProto
from .bundle_reader import SLICE_MARK, BundleReader, data_file, index_file
from .bundle_writer import write_index
from .slices import decode_name
from .storage import file_errors, make_folder_of

Entries = dict[bytes, BundleEntryProto]


def merge_bundles(
    prefixes: Sequence[str], destination: str, *, delete_old_directories: bool = False, allow_missing: bool = False
) -> None:
    """Moves the data of all checkpoints to `destination` and writes the index that holds what their indices held.

    The folders they were in are removed if asked for and empty. Raises InvalidArgumentError for a tensor that two of
    them hold, for a missing checkpoint unless those are allowed, and where there is none at all.
    """
    readers = _opened(prefixes, allow_missing=allow_missing)
    merged: Entries = {}
    moves: list[str] = []
    for reader in readers:
        _add(merged, reader, first_shard=len(moves))
        moves += [data_file(reader.prefix, k, reader.header.num_shards) for k in range(reader.header.num_shards)]
    make_folder_of(destination)
    for shard, source in enumerate(moves):
        with file_errors(source):
            Path(source).replace(data_file(destination, shard, len(moves)))
    write_index(destination, merged, len(moves))
    for reader in readers:
        if Path(reader.prefix) != Path(destination):
            Path(index_file(reader.prefix)).unlink(missing_ok=True)
    if delete_old_directories:
        for folder in {Path(reader.prefix).parent for reader in readers} - {Path(destination).parent}:
            with suppress(OSError):  # whoever keeps other files there keeps the folder
                folder.rmdir()


def _opened(prefixes: Sequence[str], *, allow_missing: bool) -> list[BundleReader]:
    readers = []
    for prefix in prefixes:
        try:
            readers.append(BundleReader(prefix))
        except NotFoundError as error:
            if not allow_missing:
                raise InvalidArgumentError(
                    f"allow_missing_files was set to false and {prefix} did not exist.NOT_FOUND: {prefix} not found"
                ) from error
    if not readers:
        raise InvalidArgumentError("At least one prefix checkpoint file must exist, but none existed.")
    return readers


def _add(merged: Entries, reader: BundleReader, first_shard: int) -> None:
    """Adds what a checkpoint holds, whose first data file becomes number `first_shard`."""
    for key, entry in reader.entries():
        before = merged.get(key)
        entry.shard_id += first_shard
        if before is None:
            merged[key] = entry
        elif entry.slices and before.slices and (entry.dtype, entry.shape) == (before.dtype, before.shape):
            before.slices.extend(entry.slices)
        else:
            name = decode_name(key.removeprefix(SLICE_MARK))
            raise InvalidArgumentError(
                f"Duplicate tensor keyed by {name} encountered, when merging prefix: {reader.prefix}"
            )
