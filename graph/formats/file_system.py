"""What saving and restoring ask of the operating system: one method is one call to it.

Flows in: paths and file descriptors. Flows out: what the call answers, its OSError as it is. Always holds: checkpoints
touch the disk through nothing else. So a test hands in a file system that dies, fails or loses what was not synced at
any call, and sees what is left (tests/graph/formats/disks.py).
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
        """A new file, open for writing; FileExistsError where there is one."""
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)

    def open(self, path: str) -> int:
        """A file or a folder, open for reading."""
        return os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))

    def close(self, file: int) -> None:
        """Closes a file. What matters was synced before, so that an error here says nothing new."""
        with suppress(OSError):
            os.close(file)

    def read(self, file: int, target: memoryview, offset: int) -> int:
        """Fills `target` with what stands at `offset`; how many bytes came, 0 at the end of the file."""
        if sys.platform == "win32":  # which has no read that leaves the position of the file alone
            os.lseek(file, offset, os.SEEK_SET)
            found = os.read(file, len(target))
            target[: len(found)] = found
            return len(found)
        return os.preadv(file, [target], offset)

    def write(self, file: int, data: memoryview) -> int:
        """Appends bytes; how many of them were taken."""
        return os.write(file, data)

    def sync(self, file: int) -> None:
        """Returns when a file, or the names in a folder, would survive a loss of power."""
        os.fsync(file)

    def lock(self, file: int, *, shared: bool = False, wait: bool = True) -> bool:
        """Locks a file until it is closed or its process ends; False where another has it and we do not `wait`.

        Any number of holders may share a lock. Where the file system has no locks, everybody gets them.
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
        """Facts on a path or an open file."""
        return os.stat(file)

    def link(self, source: str, target: str) -> None:
        """Gives a file a second name; FileExistsError where that is taken."""
        os.link(source, target)

    def rename(self, source: str, target: str) -> None:
        """Gives a file the name of another one, which then has none."""
        os.replace(source, target)

    def remove(self, path: str) -> None:
        """Takes a name from a file; whoever has it open reads on."""
        os.unlink(path)

    def names_in(self, folder: str) -> list[str]:
        """Names of the files in a folder."""
        return os.listdir(folder)

    def make_folder(self, folder: str) -> None:
        """Makes a folder in one that is there."""
        os.mkdir(folder)

    def remove_folder(self, folder: str) -> None:
        """Removes an empty folder."""
        os.rmdir(folder)


LOCAL = FileSystem()
