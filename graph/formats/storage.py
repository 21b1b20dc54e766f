"""Files as kernels need them: errors with the status codes of the field, folders and new files that survive.

Flows in: paths and what is to be done with them. Flows out: bytes, and errors of this package instead of the operating
system's, each with the path it is about. Always holds: a new file is locked from its first byte until it is closed, so
that whoever tidies up can tell one that is being written from one whose writer has died.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from ...errors import (
    AbortedError,
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    PartitaError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnavailableError,
    UnimplementedError,
    UnknownError,
)
from .file_system import LOCAL, FileSystem

# The codes that TensorFlow gives the same errors; what is not listed, EIO among it, is UNKNOWN there, too.
_BY_ERRNO: dict[int | None, type[PartitaError]] = {
    errno.EINVAL: InvalidArgumentError,
    errno.ENAMETOOLONG: InvalidArgumentError,
    errno.ENOENT: NotFoundError,
    errno.ENODEV: NotFoundError,
    errno.ENXIO: NotFoundError,
    errno.EEXIST: AlreadyExistsError,
    errno.EACCES: PermissionDeniedError,
    errno.EPERM: PermissionDeniedError,
    errno.EROFS: PermissionDeniedError,
    errno.ENOTDIR: FailedPreconditionError,
    errno.EISDIR: FailedPreconditionError,
    errno.ENOTEMPTY: FailedPreconditionError,
    errno.EBADF: FailedPreconditionError,
    errno.EBUSY: FailedPreconditionError,
    errno.ETXTBSY: FailedPreconditionError,
    errno.ENOSPC: ResourceExhaustedError,
    errno.EDQUOT: ResourceExhaustedError,
    errno.EMFILE: ResourceExhaustedError,
    errno.ENFILE: ResourceExhaustedError,
    errno.EMLINK: ResourceExhaustedError,
    errno.ENOMEM: ResourceExhaustedError,
    errno.EFBIG: OutOfRangeError,
    errno.EOVERFLOW: OutOfRangeError,
    errno.ENOSYS: UnimplementedError,
    errno.ENOTSUP: UnimplementedError,
    errno.EXDEV: UnimplementedError,
    errno.EAGAIN: UnavailableError,
    errno.EINTR: UnavailableError,
    errno.ENOLCK: UnavailableError,
    errno.ESTALE: AbortedError,
}
_NO_LINKS = frozenset({errno.EPERM, errno.EXDEV, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS})
_BUFFER_BYTES = 1 << 20  # what is smaller waits for more before it is written


@contextmanager
def file_errors(path: str | Path) -> Iterator[None]:
    """Turns what the operating system says about `path` into "path; No such file or directory" with its code."""
    try:
        yield
    except OSError as error:
        kind = _BY_ERRNO.get(error.errno, UnknownError)
        raise kind(f"{path}; {error.strerror or error}") from error


def read_file(path: str | Path) -> bytes:
    """The whole content of a file."""
    with file_errors(path):
        return Path(path).read_bytes()


def folder_of(path: str) -> str:
    """The folder that a file is in."""
    return os.path.split(path)[0] or os.curdir


def make_folder_of(path: str, files: FileSystem = LOCAL) -> None:
    """Makes the folder that a file is to be in, if only that one is missing."""
    folder = folder_of(path)
    with file_errors(folder):
        try:
            files.stat(folder)
        except FileNotFoundError:
            with suppress(FileExistsError):  # another thread was faster
                files.make_folder(folder)
            sync_folder_of(folder, files)


def sync_folder_of(path: str, files: FileSystem = LOCAL) -> None:
    """Returns when the names in a file's folder would survive a loss of power, where folders can be synced at all."""
    folder = folder_of(path)
    with file_errors(folder):
        try:
            handle = files.open(folder)
        except PermissionError:  # one may write to a folder without reading it
            return
        try:
            files.sync(handle)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):
                raise
        finally:
            files.close(handle)


class NewFile:
    """A file that nothing refers to yet, locked until it is closed.

    `create` gives an empty one to write to, `linked` one with the content of another file. Both raise
    AlreadyExistsError where the name is taken.
    """

    def __init__(self, path: str, handle: int, files: FileSystem) -> None:
        self.path = path
        self._handle = handle
        self._files = files
        self._buffer = bytearray()

    @classmethod
    def create(cls, path: str, files: FileSystem = LOCAL) -> Self:
        """An empty file."""
        with file_errors(path):
            while True:
                file = cls(path, files.create(path), files)
                try:
                    files.lock(file._handle)
                    if files.stat(file._handle).st_nlink:
                        return file
                except BaseException:
                    file.remove()
                    file.close()
                    raise
                file.close()  # between the two calls, a sweep took it for one whose writer has died

    @classmethod
    def linked(cls, source: str, path: str, files: FileSystem = LOCAL) -> Self:
        """A second name for a file, which is locked with it, or a copy where there can be no second name."""
        with file_errors(source):
            handle = files.open(source)
        file = cls(path, handle, files)
        try:
            with file_errors(source):
                files.lock(handle, shared=True)
            if file._link(source):
                return file
            copy = cls._copied(handle, path, files)
        except BaseException:
            file.close()
            raise
        file.close()
        return copy

    @classmethod
    def _copied(cls, source: int, path: str, files: FileSystem) -> Self:
        file = cls.create(path, files)
        try:
            piece, offset = memoryview(bytearray(_BUFFER_BYTES)), 0
            with file_errors(path):
                while size := files.read(source, piece, offset):
                    file.write(piece[:size])
                    offset += size
        except BaseException:
            file.remove()
            file.close()
            raise
        return file

    def write(self, data: bytes | memoryview) -> int:
        """Appends bytes, large ones without a copy; how many there were."""
        if len(self._buffer) + len(data) > _BUFFER_BYTES:
            self._flush()
        if len(data) > _BUFFER_BYTES:
            self._write(memoryview(data))
        else:
            self._buffer += data
        return len(data)

    def sync(self) -> None:
        """Returns when what was written would survive a loss of power."""
        self._flush()
        with file_errors(self.path):
            self._files.sync(self._handle)

    def remove(self) -> None:
        """Takes the file's name away, if that can be done."""
        with suppress(OSError):
            self._files.remove(self.path)

    def close(self) -> None:
        """Unlocks and closes the file; what was not synced may be missing from it."""
        self._files.close(self._handle)

    def _link(self, source: str) -> bool:
        """Gives a file this one's name; False where the file system has no second names for files, or not for it."""
        with file_errors(self.path):
            try:
                self._files.link(source, self.path)
            except OSError as error:
                if error.errno in _NO_LINKS:
                    return False
                raise
        return True

    def _flush(self) -> None:
        pieces, self._buffer = self._buffer, bytearray()
        self._write(memoryview(pieces))

    def _write(self, data: memoryview) -> None:
        with file_errors(self.path):
            while data:
                data = data[self._files.write(self._handle, data) :]
