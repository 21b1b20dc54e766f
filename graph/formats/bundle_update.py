"""Replaces a checkpoint atomically: after a kill or a power loss, readers find the old one or the new one, whole.

    sweep       removes files that dead writers left
    claim       an empty file whose name lists the data files that come next
    place       new data files get names that no file has: the last numbers of the first free number of shards
                  first save         x.data-00000-of-00001     as TensorFlow names it
                  saved over that    x.data-00001-of-00002     then the first name is free again
    sync        data files, the new index under a temporary name, then the folder, so that names survive a power loss
    rename      the index gets its name: before it the old checkpoint is valid, after it the new one
    sync        the folder again: now the rename survives a power loss too
    sweep       removes the data files that the old index lists, which had got a temporary name, then the claim

A data file goes only if a claim or an index under a temporary name lists it. Such a name ends in a checksum of itself,
so that no file of anybody else has one; other files that look like data files or temporary files stay.

A writer locks each new file until after the rename, and a sweep skips locked files. So several writers may save the
same prefix at once: the last rename wins. While one of them is at work, claims stay, also of others that have ended:
the one that ends last knows by them which files it has replaced.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import count
from os.path import split
from types import TracebackType
from typing import Self

from ...errors import AlreadyExistsError, NotFoundError, PartitaError
from .bundle_index import BundleEntries, BundleIndex, data_file, index_bytes, index_file
from .crc32c import crc32c
from .file_system import FileSystem
from .storage import NewFile, file_errors, folder_of, make_folder_of, sync_folder_of

_DATA_FILE = re.compile(r"\.data-(?P<shard>\d{5,})-of-(?P<number>\d{5,})")
_LIST = re.compile(
    r"(?:\.index\.tempstate|\.tempstate-(?P<first>\d+)-of-(?P<number>\d+)-)[0-9a-f]{8}(?P<checksum>[0-9a-f]{8})"
)


class BundleUpdate:
    """One replacement of a checkpoint: `place` data files, write to them, `publish` the entries that name them.

    If the `with` block ends before the new index is in place, the new files are removed.
    """

    def __init__(self, prefix: str, files: FileSystem) -> None:
        self.prefix = prefix
        self.num_shards = 0
        self.first_shard = 0
        self._files = files
        self._claim: NewFile | None = None
        self._data: list[NewFile] = []
        self._index: NewFile | None = None
        self._old_index: NewFile | None = None

    def __enter__(self) -> Self:
        """Makes the folder if it is missing."""
        make_folder_of(self.prefix, self._files)
        sweep(self.prefix, self._files)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        lists = [file for file in (self._index, self._old_index, self._claim) if file is not None]
        if error is not None and not self._may_be_published():
            for file in self._data + lists:  # the claim last, which lists the others
                file.remove()
        for file in self._data + lists:
            file.close()
        if error is None and not sweep(self.prefix, self._files):
            for file in lists[1:]:  # what no later sweep will see
                file.remove()

    def place(self, makers: Sequence[Callable[[str], NewFile]]) -> list[NewFile]:
        """Creates one data file per maker, which gets the path; they are numbered from `first_shard` on."""
        names = _names_of(self.prefix, self._files)
        used_numbers = set() if names is None else {data.number for data in names.data}
        for number in count(max(len(makers), 1)):
            if number not in used_numbers and self._own(number, makers):
                break
        self.num_shards, self.first_shard = number, number - len(makers)
        for shard, make in enumerate(makers[:-1], self.first_shard):
            self._data.insert(-1, make(data_file(self.prefix, shard, number)))
        return self._data.copy()

    def _own(self, number: int, makers: Sequence[Callable[[str], NewFile]]) -> bool:
        """Claims the data files with a number of shards and creates the last one; False if another writer owns it."""
        claim = f"{self.prefix}.tempstate-{number - len(makers)}-of-{number}-"
        self._claim = NewFile.create(_sealed(claim), self._files)
        try:
            self._data += [make(data_file(self.prefix, number - 1, number)) for make in makers[-1:]]
        except AlreadyExistsError:
            self._claim.remove()
            self._claim.close()
            self._claim = None
            return False
        return True

    def publish(self, entries: BundleEntries) -> None:
        """Replaces the index by one with these entries; when this returns the new checkpoint is valid."""
        for file in self._data:
            file.sync()
        path = index_file(self.prefix)
        self._index = NewFile.create(_sealed(f"{path}.tempstate"), self._files)
        self._index.write(index_bytes(entries, self.num_shards))
        self._index.sync()
        with suppress(NotFoundError):  # a first save
            self._old_index = NewFile.linked(path, _sealed(f"{path}.tempstate"), self._files, lock=False)
            self._old_index.sync()
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


def retire(index: BundleIndex, files: FileSystem) -> None:
    """Removes a checkpoint unless another one has its name by now: its index, then the data files that this lists."""
    path = index_file(index.prefix)
    removed = _sealed(f"{path}.tempstate")
    with file_errors(path):
        if not index.is_at(path):
            return
        files.rename(path, removed)
        if not index.is_at(removed):  # it was saved between the two calls
            with suppress(FileExistsError):  # and again
                files.link(removed, path)
    sweep(index.prefix, files)


def sweep(prefix: str, files: FileSystem) -> bool:
    """Removes files that saves and merges of this prefix no longer need, or left when they were killed.

    These are data files that a temporary file lists, unless they have the number of shards of the index or are locked,
    and then the temporary files. A file that cannot be removed is left for the next sweep. False if the folder cannot
    be listed.
    """
    names = _names_of(prefix, files)
    if names is None or not names.lists:
        return names is not None
    try:
        index = BundleIndex(prefix, files)
    except NotFoundError:
        index = None
    except PartitaError:  # its files are not known, so no file is removed until it has been replaced
        return True
    number = None if index is None else index.num_shards
    with suppress(OSError, PartitaError), ExitStack() as locks:
        # An index needs no lock, which two links to one index could not both have: its writer's claim is locked.
        dead = [own for own in names.lists if own.claimed is None or _locked(own.path, files, locks)]
        listed = [own.lists(prefix, files) for own in dead]
        unneeded = [data for data in names.data if data.number != number and any(lists(data) for lists in listed)]
        unlocked = [data for data in unneeded if _locked(data.path, files, locks)]
        # Before files of other indices are removed, this index must be the one that survives a power loss.
        sync_folder_of(prefix, files)
        # A writer unlocks its files after renaming its index, so if one has finished since, the index differs.
        if _is_unchanged(prefix, index, files):
            num_removed = sum([_is_removed(data.path, files) for data in unlocked])
            if num_removed == len(unneeded) and len(dead) == len(names.lists):
                for own in dead:
                    _is_removed(own.path, files)
    return True


def _is_removed(path: str, files: FileSystem) -> bool:
    try:
        files.remove(path)
    except OSError:
        return False
    return True


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


@dataclass(frozen=True, slots=True)
class _Data:
    """A file with the name of a data file, whoever wrote it."""

    path: str
    shard: int
    number: int


@dataclass(frozen=True, slots=True)
class _List:
    """A temporary file, which lists data files: a claim by its name, an index by its entries."""

    path: str
    claimed: tuple[int, int] | None

    def lists(self, prefix: str, files: FileSystem) -> Callable[[_Data], bool]:
        """Whether a data file is listed: with a claim's number from its shard on, or where an index has elements.

        A data file without elements is empty. An index that its writer was killed in lists nothing, but the claim does.
        """
        if self.claimed is not None:
            first, number = self.claimed
            return lambda data: data.number == number and first <= data.shard < number
        try:
            index = BundleIndex(prefix, files, self.path)
            shards = set(index.shards())
        except PartitaError:
            return lambda data: False

        def lists(data: _Data) -> bool:
            if data.number != index.num_shards or data.shard >= data.number:
                return False
            return data.shard in shards or not files.stat(data.path).st_size

        return lists


@dataclass(frozen=True, slots=True)
class _Names:
    """The files of a prefix: those that look like its data files, and the lists that its writers made."""

    data: list[_Data]
    lists: list[_List]


def _names_of(prefix: str, files: FileSystem) -> _Names | None:
    """None if the folder cannot be listed, as some can be written to but not read."""
    try:
        names = files.names_in(folder_of(prefix))
    except OSError:
        return None  # opening a file will report the error
    own = split(prefix)[1]
    folder = prefix[: len(prefix) - len(own)]
    listed = _Names([], [])
    for name in names:
        begin = len(own) if name.startswith(own) else len(name)
        if data := _DATA_FILE.fullmatch(name, begin):
            listed.data.append(_Data(f"{folder}{name}", int(data["shard"]), int(data["number"])))
        elif (match := _LIST.fullmatch(name, begin)) and _checksum(name[:-8]) == match["checksum"]:
            claimed = None if match["first"] is None else (int(match["first"]), int(match["number"]))
            listed.lists.append(_List(f"{folder}{name}", claimed))
    return listed


def _sealed(start: str) -> str:
    """A new path that begins so and whose name ends in its checksum."""
    drawn = f"{start}{secrets.randbits(32):08x}"
    return f"{drawn}{_checksum(split(drawn)[1])}"


def _checksum(name: str) -> str:
    return f"{crc32c(os.fsencode(name)):08x}"
