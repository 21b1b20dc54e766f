"""The calls to the operating system that saving and restoring make, one method per call.

Methods raise the OSError of the call. Checkpoints use the disk through this class only, so tests can pass a file system
that is killed, fails or loses unsynced data at any call (tests/graph/formats/disks.py).
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

if sys.platform != "win32":
    import fcntl


class FileSystem:
    """The files of this machine."""

    def create(self, path: str) -> int:
        """Creates a file for writing; FileExistsError if it exists."""
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)

    def open(self, path: str) -> int:
        """Opens a file or a folder for reading."""
        return os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))

    def close(self, file: int) -> None:
        """Closes a file. Important data has been synced before, so errors are ignored."""
        with suppress(OSError):
            os.close(file)

    def read(self, file: int, target: memoryview, offset: int) -> int:
        """Fills `target` with the bytes at `offset`; returns how many were read, 0 at the end of the file."""
        if sys.platform == "win32":  # Windows has no pread
            os.lseek(file, offset, os.SEEK_SET)
            data = os.read(file, len(target))
            target[: len(data)] = data
            return len(data)
        return os.preadv(file, [target], offset)

    def write(self, file: int, data: memoryview) -> int:
        """Appends bytes; returns how many were written."""
        return os.write(file, data)

    def sync(self, file: int) -> None:
        """Returns when a file, or the names in a folder, survive a power loss."""
        os.fsync(file)

    def lock(self, file: int, *, shared: bool = False, wait: bool = True) -> bool:
        """Locks a file until it is closed or the process ends; False if it is locked elsewhere and not `wait`.

        Shared locks may be held by several at once. On a file system without locks every lock succeeds.
        """
        if sys.platform != "win32":
            kind = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB)
            try:
                fcntl.flock(file, kind)
            except BlockingIOError:
                return False
            except OSError:
                return True
        return True

    def stat(self, file: str | int) -> os.stat_result:
        return os.stat(file)

    def link(self, source: str, target: str) -> None:
        """Makes a hard link; FileExistsError if `target` exists."""
        os.link(source, target)

    def rename(self, source: str, target: str) -> None:
        """Renames a file, replacing `target` if it exists."""
        os.replace(source, target)

    def remove(self, path: str) -> None:
        """Removes a name of a file; open handles stay readable."""
        os.unlink(path)

    def names_in(self, folder: str) -> list[str]:
        return os.listdir(folder)

    def make_folder(self, folder: str) -> None:
        """Makes a folder; its parent must exist."""
        os.mkdir(folder)

    def remove_folder(self, folder: str) -> None:
        os.rmdir(folder)


LOCAL = FileSystem()
