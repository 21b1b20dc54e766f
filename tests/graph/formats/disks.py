"""File systems that are killed, fail, or lose unsynced data at any operation of a save.

An operation is a call of a method of `FileSystem`, each of which is one system call. All of these classes work on real
files. `PowerLoss` also collects the folders that a power loss could leave.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, combinations
from pathlib import Path
from typing import Any

from partita.graph.formats.file_system import FileSystem

OPERATIONS = [name for name in vars(FileSystem) if not name.startswith("_")]
CHANGES = frozenset({"create", "write", "sync", "link", "rename", "remove", "make_folder", "remove_folder"})


class Unsynced(FileSystem):
    """The real disk without syncs, which take long: no test switches the power off."""

    def sync(self, file: int) -> None:
        """Does nothing."""


UNSYNCED = Unsynced()


class Watched(Unsynced):
    """A disk whose operations all go through `run`."""

    def run(self, name: str, work: Callable[..., Any], *arguments: Any) -> Any:  # Any: whatever the operation takes
        """Does one operation."""
        return work(*arguments)


def _watched(name: str) -> Callable[..., Any]:
    def operation(self: Watched, *arguments: Any, **named: Any) -> Any:
        def work(*given: Any) -> Any:
            return getattr(Unsynced, name)(self, *given, **named)

        return self.run(name, work, *arguments)

    return operation


for _name in OPERATIONS:
    setattr(Watched, _name, _watched(_name))


class ProcessKilled(BaseException):
    """The process was killed: saving code must not catch this, and must not use the disk any more."""


class DiskKilledAt(Watched):
    """Is killed at operation number `kill`, in the middle of it if it is a write; otherwise counts operations."""

    def __init__(self, kill: int | None = None) -> None:
        self.done = 0
        self._kill = kill
        self._open: set[int] = set()

    def run(self, name: str, work: Callable[..., Any], *arguments: Any) -> Any:
        """Does one operation, or raises `ProcessKilled`."""
        if self._kill is not None and self.done >= self._kill:
            if name == "write" and self.done == self._kill:
                file, data = arguments
                work(file, data[: len(data) // 2])
            self.end_process()
        self.done += 1
        result = work(*arguments)
        if name in ("create", "open"):
            self._open.add(result)
        elif name == "close":
            self._open.discard(arguments[0])
        return result

    def end_process(self) -> None:
        """Does what the end of a process does: closes its files, which unlocks them."""
        self.done += 1
        while self._open:
            os.close(self._open.pop())
        raise ProcessKilled


class Faulty(Watched):
    """Raises an error at operation number `fault`, and with `forever` at all later operations that change something."""

    def __init__(self, fault: int, code: int, *, forever: bool = False) -> None:
        self.done = 0
        self._fault = fault
        self._code = code
        self._forever = forever

    def run(self, name: str, work: Callable[..., Any], *arguments: Any) -> Any:
        """Does one operation, or fails."""
        number, self.done = self.done, self.done + 1
        due = number == self._fault or (self._forever and number > self._fault and name in CHANGES)
        if not due or name in ("close", "lock"):  # neither of which reports errors
            return work(*arguments)
        raise OSError(self._code, os.strerror(self._code))


class WithoutLinks(DiskKilledAt):
    """A disk without hard links."""

    def run(self, name: str, work: Callable[..., Any], *arguments: Any) -> Any:
        """Does one operation, unless it is `link`."""
        if name == "link":
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))
        return super().run(name, work, *arguments)


Tree = dict[str, bytes | None]  # content by path, None for a folder
Change = dict[str, int | None]  # paths that get another file, or none, at once


class PowerLoss(Watched):
    """Records the changes of files below a folder, and computes the states that a power loss may leave.

    Certain are the content of a file at its last sync and the names in a folder at its last sync. Later changes of
    names may each be there or not; of content written after the last sync there may be nothing, all of it, or zeros of
    the same length.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._written: list[bytes] = []
        self._synced: list[bytes] = []
        self._names: dict[str, int] = {}
        self._certain: dict[str, int] = {}
        self._pending: list[Change] = []
        self._handles: dict[int, str] = {}
        self._files: dict[int, int] = {}
        self._folders = {str(root)}
        for path in sorted(root.rglob("*")):
            self._names[str(path)] = self._certain[str(path)] = self._new_file(
                path.read_bytes() if path.is_file() else b""
            )
            if path.is_dir():
                self._folders.add(str(path))
        self.states: dict[frozenset[tuple[str, bytes | None]], str] = {}
        self.note("nothing")

    def run(self, name: str, work: Callable[..., Any], *arguments: Any) -> Any:
        """Does one operation, then adds the states that a power loss at this moment could leave."""
        result = work(*arguments)
        if name == "open":
            self._handles[result] = arguments[0]
            self._files[result] = self._names.get(arguments[0], -1)
        elif name in CHANGES:
            getattr(self, f"_after_{name}")(result, *arguments)
            self.note(f"{name} {arguments}")
        return result

    def _after_create(self, handle: int, path: str) -> None:
        self._files[handle] = self._names[path] = self._new_file(b"")
        self._handles[handle] = path
        self._pending.append({path: self._names[path]})

    def _after_write(self, size: int, handle: int, data: memoryview) -> None:
        self._written[self._files[handle]] += bytes(data[:size])

    def _after_sync(self, _: None, handle: int) -> None:
        path, file = self._handles[handle], self._files[handle]
        if path not in self._folders:
            self._synced[file] = self._written[file]
            return
        for change in [change for change in self._pending if _folder(change) == path]:
            self._pending.remove(change)
            _apply(change, self._certain)

    def _after_link(self, _: None, source: str, target: str) -> None:
        self._names[target] = self._names[source]
        self._pending.append({target: self._names[source]})

    def _after_rename(self, _: None, source: str, target: str) -> None:
        self._names[target] = self._names.pop(source)
        self._pending.append({source: None, target: self._names[target]})

    def _after_remove(self, _: None, path: str) -> None:
        del self._names[path]
        self._pending.append({path: None})

    def _after_make_folder(self, _: None, path: str) -> None:
        self._folders.add(path)
        self._names[path] = self._new_file(b"")
        self._pending.append({path: self._names[path]})

    def _after_remove_folder(self, _: None, path: str) -> None:
        self._after_remove(None, path)

    def _new_file(self, content: bytes) -> int:
        self._written.append(content)
        self._synced.append(content)
        return len(self._synced) - 1

    def note(self, moment: str) -> None:
        """Adds all states that are possible now."""
        zeros = [
            synced + bytes(len(written) - len(synced))
            for synced, written in zip(self._synced, self._written, strict=True)
        ]
        for changes in _subsets(self._pending):
            names = dict(self._certain)
            for change in changes:
                _apply(change, names)
            for content in (self._synced, self._written, zeros):
                self.states.setdefault(frozenset(self._tree(names, content).items()), moment)

    def _tree(self, names: Mapping[str, int], content: list[bytes]) -> Tree:
        """The files below the root; without those in a folder that does not exist."""
        tree: Tree = {}
        for path, file in sorted(names.items()):
            parent = str(Path(path).parent)
            if parent == str(self._root) or str(Path(parent).relative_to(self._root)) in tree:
                tree[str(Path(path).relative_to(self._root))] = None if path in self._folders else content[file]
        return tree


def _folder(change: Change) -> str:
    return str(Path(next(iter(change))).parent)


def _apply(change: Change, names: dict[str, int]) -> None:
    for path, file in change.items():
        if file is None:
            names.pop(path, None)
        else:
            names[path] = file


def _subsets(changes: list[Change]) -> Iterator[tuple[Change, ...]]:
    """All subsets; of more than eight changes only those with up to two changes, or all but two."""
    sizes = range(len(changes) + 1)
    if len(changes) > 8:
        sizes = [0, 1, 2, len(changes) - 2, len(changes) - 1, len(changes)]  # type: ignore[assignment]  # both are iterated over only
    return chain.from_iterable(combinations(changes, size) for size in sizes)


def put(tree: frozenset[tuple[str, bytes | None]], root: Path) -> None:
    """Makes a folder, and files and folders below it."""
    root.mkdir(exist_ok=True)
    for name, content in sorted(tree):
        if content is None:
            (root / name).mkdir(parents=True, exist_ok=True)
        else:
            (root / name).write_bytes(content)
