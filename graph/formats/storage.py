"""File access for kernels: this package's errors instead of OSError, folders, and new files that are written safely.

Every error has the path in it. A new file is locked from its creation until it is closed, so that a sweep can tell a
file that is being written from one whose writer was killed.
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

# TensorFlow's codes for errno values; others, such as EIO, are UNKNOWN there too.
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
_BUFFER_BYTES = 1 << 20  # smaller writes are collected up to this size


@contextmanager
def file_errors(path: str | Path) -> Iterator[None]:
    """Turns an OSError inside the block into "path; No such file or directory" with its status code."""
    try:
        yield
    except ValueError as error:
        if "\0" not in str(path):
            raise
        raise InvalidArgumentError(f"{str(path)!r} names no file: it holds a null byte") from error
    except OSError as error:
        kind = _BY_ERRNO.get(error.errno, UnknownError)
        raise kind(f"{path}; {error.strerror or error}") from error


def read_file(path: str | Path) -> bytes:
    """The whole content of a file."""
    with file_errors(path):
        return Path(path).read_bytes()


def folder_of(path: str) -> str:
    return os.path.split(path)[0] or os.curdir


def make_folder_of(path: str, files: FileSystem = LOCAL) -> None:
    """Makes the folder of a file; its parent must exist."""
    folder = folder_of(path)
    with file_errors(folder):
        try:
            files.stat(folder)
        except FileNotFoundError:
            with suppress(FileExistsError):  # another thread was faster
                files.make_folder(folder)
            sync_folder_of(folder, files)


def sync_folder_of(path: str, files: FileSystem = LOCAL) -> None:
    """Returns when the names in a file's folder survive a power loss, on systems that can sync folders."""
    folder = folder_of(path)
    with file_errors(folder):
        try:
            handle = files.open(folder)
        except PermissionError:  # the folder is writable but not readable
            return
        try:
            files.sync(handle)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):
                raise
        finally:
            files.close(handle)


class NewFile:
    """A file that no index refers to yet, locked until it is closed.

    `create` makes an empty file, `linked` one with the content of another. Both raise AlreadyExistsError if the name is
    in use.
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
                file.close()  # between the two calls a sweep removed it as a killed writer's file

    @classmethod
    def linked(cls, source: str, path: str, files: FileSystem = LOCAL, *, lock: bool = True) -> Self:
        """A hard link to a file, or a copy where hard links are not possible; with `lock`, both names are locked."""
        with file_errors(source):
            handle = files.open(source)
        file = cls(path, handle, files)
        try:
            with file_errors(source):
                if lock:
                    files.lock(handle, shared=True)
            if file._link(source):
                return file
            copy = cls._copied(source, handle, path, files)
        except BaseException:
            file.close()
            raise
        file.close()
        return copy

    @classmethod
    def _copied(cls, source: str, handle: int, path: str, files: FileSystem) -> Self:
        file = cls.create(path, files)
        try:
            piece, offset = memoryview(bytearray(_BUFFER_BYTES)), 0
            with file_errors(source):
                while size := files.read(handle, piece, offset):
                    file.write(piece[:size])
                    offset += size
        except BaseException:
            file.remove()
            file.close()
            raise
        return file

    def write(self, data: bytes | memoryview) -> int:
        """Appends bytes, large ones without copying; returns their number."""
        if len(self._buffer) + len(data) > _BUFFER_BYTES:
            self._flush()
        if len(data) > _BUFFER_BYTES:
            self._write(memoryview(data))
        else:
            self._buffer += data
        return len(data)

    def sync(self) -> None:
        """Returns when the written bytes survive a power loss."""
        self._flush()
        with file_errors(self.path):
            self._files.sync(self._handle)

    def remove(self) -> None:
        """Removes the file's name, if possible."""
        with suppress(OSError):
            self._files.remove(self.path)

    def close(self) -> None:
        """Unlocks and closes the file; bytes that were not synced may be missing from it."""
        self._files.close(self._handle)

    def _link(self, source: str) -> bool:
        """Makes a hard link from `source` to this path; False if the file system cannot."""
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
