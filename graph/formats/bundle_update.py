"""What makes saves and merges safe: a checkpoint is replaced in one step, whatever happens before or after it.

Flows in: a prefix, new data files, entries. Flows out: an index that holds these. Always holds: whoever reads the
prefix, after a kill or a loss of power at any moment, finds the old checkpoint or the new one, whole.

    sweep       what dead writers left is removed
    place       new data files take names that no file has: of the first number of shards that is free, the last ones
                  first save         x.data-00000-of-00001     as TensorFlow names it
                  saved over that    x.data-00001-of-00002     then the first name is free again
    sync        data files, the new index under a temporary name, then the folder, which makes their names last
    rename      the index takes its name: until here the old checkpoint, from here the new one
    sync        the folder again: from here the new checkpoint survives a loss of power as well
    sweep       what the old index named is removed

Writers hold a lock on each new file until after the rename, and a sweep leaves locked files alone. So several may save
the same prefix at once: the one that renames last wins.
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

# What a save or a merge leaves behind when it dies: data files, and temporary files (of TensorFlow's as well).
_STRAY = re.compile(r"\.(?:index\.tempstate\d+|data-\d{5,}-of-(?P<number>\d{5,})(?P<temporary>\.tempstate\d+)?)")


class BundleUpdate:
    """One replacement of a checkpoint: `place` data files, write to them, `publish` the entries that name them.

    Where the `with` block ends before the new index is in place, the new files are removed.
    """

    def __init__(self, prefix: str, files: FileSystem) -> None:
        self.prefix = prefix
        self.num_shards = 0
        self.first_shard = 0
        self._files = files
        self._new: list[NewFile] = []
        self._index: NewFile | None = None

    def __enter__(self) -> Self:
        """Makes the folder if that is missing."""
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
        """The data files that the makers make of the paths they are given, numbered from `first_shard` on."""
        taken = {number for _, number in _strays(self.prefix, self._files)}
        for number in count(max(len(makers), 1)):
            # Whoever has the last file of a number has the number: of two writers at once, one goes on to the next.
            with suppress(AlreadyExistsError):
                if number not in taken:
                    self._new += [make(data_file(self.prefix, number - 1, number)) for make in makers[-1:]]
                    break
        self.num_shards, self.first_shard = number, number - len(makers)
        for shard, make in enumerate(makers[:-1], self.first_shard):
            self._new.insert(-1, make(data_file(self.prefix, shard, number)))
        return self._new.copy()

    def publish(self, entries: Entries) -> None:
        """Replaces the index by one that holds the entries; the new checkpoint is there when this returns."""
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
        """Whether the index may have been renamed: unless it is known to have its temporary name still."""
        if self._index is None:
            return False
        try:
            self._files.stat(self._index.path)
        except OSError:
            return True
        return False


def sweep(prefix: str, files: FileSystem) -> None:
    """Removes what saves and merges of this prefix no longer need, or have left when they died.

    That is each data file of another number of shards than the index has, and each temporary file, unless it is locked.
    What cannot be removed stays for the next time.
    """
    try:
        index = BundleIndex(prefix, files)
    except NotFoundError:
        index = None
    except PartitaError:  # what it names is not known: nothing goes until a new one has taken its place
        return
    number = None if index is None else index.num_shards
    unneeded = [path for path, other in _strays(prefix, files) if other is None or other != number]
    if unneeded:
        with suppress(OSError, PartitaError), ExitStack() as locks:
            unlocked = [path for path in unneeded if _locked(path, files, locks)]
            # The index that was seen has to be the one that a loss of power would leave, before what others name goes.
            sync_folder_of(prefix, files)
            # A writer renames its index before it unlocks its files: of one that did so by now, this index is another.
            if _is_unchanged(prefix, index, files):
                for path in unlocked:
                    with suppress(OSError):
                        files.remove(path)


def _locked(path: str, files: FileSystem, locks: ExitStack) -> bool:
    """Locks a file, to be unlocked with the others; False where its writer is at work."""
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
    """The prefix's data and temporary files, the data files with their number of shards."""
    try:
        names = files.names_in(folder_of(prefix))
    except OSError:
        return []  # opening the first file says what is wrong, and there are folders that one may write to all the same
    own = split(prefix)[1]
    found = []
    for name in names:
        match = _STRAY.fullmatch(name, len(own)) if name.startswith(own) else None
        if match is not None:
            temporary = match["temporary"] or match["number"] is None
            found.append((f"{prefix[: len(prefix) - len(own)]}{name}", None if temporary else int(match["number"])))
    return found
