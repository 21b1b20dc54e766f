"""Replaces a checkpoint atomically: after a kill or a power loss, readers find the old one or the new one, whole.

    sweep       removes files that dead writers left
    place       new data files get names that no file has: the last numbers of the first free number of shards
                  first save         x.data-00000-of-00001     as TensorFlow names it
                  saved over that    x.data-00001-of-00002     then the first name is free again
    sync        data files, the new index under a temporary name, then the folder, so that names survive a power loss
    rename      the index gets its name: before it the old checkpoint is valid, after it the new one
    sync        the folder again: now the rename survives a power loss too
    sweep       removes the files that the old index named

A writer locks each new file until after the rename, and a sweep skips locked files. So several writers may save the
same prefix at once: the last rename wins.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from itertools import count
from os.path import split
from types import TracebackType
from typing import Self

from ...errors import AlreadyExistsError, NotFoundError, PartitaError
from .bundle_index import BundleIndex, Entries, data_file, index_bytes, index_file
from .file_system import FileSystem
from .storage import NewFile, file_errors, folder_of, make_folder_of, sync_folder_of

# Files that a killed save or merge leaves: data files, and temporary files (TensorFlow's too).
_STRAY = re.compile(r"\.(?:index\.tempstate\d+|data-\d{5,}-of-(?P<number>\d{5,})(?P<temporary>\.tempstate\d+)?)")


class BundleUpdate:
    """One replacement of a checkpoint: `place` data files, write to them, `publish` the entries that name them.

    If the `with` block ends before the new index is in place, the new files are removed.
    """

    def __init__(self, prefix: str, files: FileSystem) -> None:
        self.prefix = prefix
        self.num_shards = 0
        self.first_shard = 0
        self._files = files
        self._new: list[NewFile] = []
        self._index: NewFile | None = None

    def __enter__(self) -> Self:
        """Makes the folder if it is missing."""
        make_folder_of(self.prefix, self._files)
        sweep(self.prefix, self._files)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and not self._may_be_published():
            for file in self._new:
                file.remove()
        for file in self._new:
            file.close()
        if error is None:
            sweep(self.prefix, self._files)

    def place(self, makers: Sequence[Callable[[str], NewFile]]) -> list[NewFile]:
        """Creates one data file per maker, which gets the path; they are numbered from `first_shard` on."""
        used_numbers = {number for _, number in _strays(self.prefix, self._files)}
        for number in count(max(len(makers), 1)):
            # The writer that creates the last file of a number of shards owns it; another writer tries the next number.
            with suppress(AlreadyExistsError):
                if number not in used_numbers:
                    self._new += [make(data_file(self.prefix, number - 1, number)) for make in makers[-1:]]
                    break
        self.num_shards, self.first_shard = number, number - len(makers)
        for shard, make in enumerate(makers[:-1], self.first_shard):
            self._new.insert(-1, make(data_file(self.prefix, shard, number)))
        return self._new.copy()

    def publish(self, entries: Entries) -> None:
        """Replaces the index by one with these entries; when this returns the new checkpoint is valid."""
        for file in self._new:
            file.sync()
        path = index_file(self.prefix)
        self._index = NewFile.create(f"{path}.tempstate{secrets.randbits(64)}", self._files)
        self._new.append(self._index)
        self._index.write(index_bytes(entries, self.num_shards))
        self._index.sync()
        sync_folder_of(path, self._files)
        with file_errors(path):
            self._files.rename(self._index.path, path)
        sync_folder_of(path, self._files)

    def _may_be_published(self) -> bool:
        """Whether the index may have been renamed: False only if its temporary name still exists."""
        if self._index is None:
            return False
        try:
            self._files.stat(self._index.path)
        except OSError:
            return True
        return False


def sweep(prefix: str, files: FileSystem) -> None:
    """Removes files that saves and merges of this prefix no longer need, or left when they were killed.

    These are data files of another number of shards than the index has, and temporary files, unless they are locked. A
    file that cannot be removed is left for the next sweep.
    """
    try:
        index = BundleIndex(prefix, files)
    except NotFoundError:
        index = None
    except PartitaError:  # its files are not known, so no file is removed until it has been replaced
        return
    number = None if index is None else index.num_shards
    unneeded = [path for path, other in _strays(prefix, files) if other is None or other != number]
    if unneeded:
        with suppress(OSError, PartitaError), ExitStack() as locks:
            unlocked = [path for path in unneeded if _locked(path, files, locks)]
            # Before files of other indices are removed, this index must be the one that survives a power loss.
            sync_folder_of(prefix, files)
            # A writer unlocks its files after renaming its index, so if one has finished since, the index differs.
            if _is_unchanged(prefix, index, files):
                for path in unlocked:
                    with suppress(OSError):
                        files.remove(path)


def _locked(path: str, files: FileSystem, locks: ExitStack) -> bool:
    """Locks a file for as long as `locks` is open; False if its writer has it locked."""
    try:
        handle = files.open(path)
    except OSError:
        return False
    locks.callback(files.close, handle)
    return files.lock(handle, wait=False)


def _is_unchanged(prefix: str, index: BundleIndex | None, files: FileSystem) -> bool:
    if index is not None:
        return index.is_current()
    try:
        files.stat(index_file(prefix))
    except FileNotFoundError:
        return True
    return False


def _strays(prefix: str, files: FileSystem) -> list[tuple[str, int | None]]:
    """The prefix's data and temporary files; data files with their number of shards."""
    try:
        names = files.names_in(folder_of(prefix))
    except OSError:
        return []  # opening a file will report the error; some folders are writable but not readable
    own = split(prefix)[1]
    strays = []
    for name in names:
        match = _STRAY.fullmatch(name, len(own)) if name.startswith(own) else None
        if match is not None:
            temporary = match["temporary"] or match["number"] is None
            strays.append((f"{prefix[: len(prefix) - len(own)]}{name}", None if temporary else int(match["number"])))
    return strays
