"""Files as kernels need them: whole or not at all, and with the status codes of the field.

Flows in: paths and what is to be done with them. Flows out: bytes, and errors of this package instead of the operating
system's. Always holds: a file that is being written has another name until it is complete, so that a reader, an error
or a cancellation never leaves half of one behind.
"""

from __future__ import annotations

import errno
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from ...errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    NotFoundError,
    PartitaError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnavailableError,
    UnknownError,
)

_BY_ERRNO: dict[int | None, type[PartitaError]] = {
    errno.ENOENT: NotFoundError,
    errno.ENOTDIR: FailedPreconditionError,
    errno.EISDIR: FailedPreconditionError,
    errno.ENOTEMPTY: FailedPreconditionError,
    errno.EACCES: PermissionDeniedError,
    errno.EPERM: PermissionDeniedError,
    errno.EROFS: PermissionDeniedError,
    errno.EEXIST: AlreadyExistsError,
    errno.ENOSPC: ResourceExhaustedError,
    errno.EDQUOT: ResourceExhaustedError,
    errno.EMFILE: ResourceExhaustedError,
    errno.EBUSY: UnavailableError,
}


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


@contextmanager
def replacing(path: str | Path) -> Iterator[IO[bytes]]:
    """A file to write to, which takes the name `path` when the body is done and vanishes when it fails."""
    target = Path(path)
    temporary = target.with_name(f"{target.name}.tempstate{secrets.randbits(64)}")
    with file_errors(path):
        try:
            with temporary.open("xb") as file:
                yield file
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def make_folder_of(path: str | Path) -> None:
    """Makes the folder that a file is to be in, if only that one is missing."""
    folder = Path(path).parent
    if not folder.exists():
        with file_errors(folder):
            folder.mkdir(exist_ok=True)
