"""Checks that output files and folders can be written, before anything is read or run.

The checks create and open nothing. (A disk may still fill up later.)
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from .failure import ConfigurationError, configuring


def check_outputs(files: Mapping[str, Path | None], inputs: Mapping[str, Path | None]) -> None:
    """ConfigurationError unless each file can be written; flags map to paths, None for a flag that is not given.

    Writing over one of `inputs`, the files that the command reads, or twice to one file is an error too.
    """
    flag_of = {_real(path, flag): flag for flag, path in inputs.items() if path is not None}
    for flag, path in files.items():
        if path is not None:
            real = _real(path, flag)
            if real in flag_of and (real.is_file() or not real.exists()):
                raise ConfigurationError(f"{flag}: {str(path)!r} is what {flag_of[real]} names; give another file")
            flag_of[real] = flag
            _check_file(path, real, flag)


def check_folder(path: Path, flag: str) -> None:
    """ConfigurationError unless files can be written into the folder, or it can be created."""
    real = _real(path, flag)
    existing = real
    while not existing.exists():
        existing = existing.parent
    if not existing.is_dir():
        what = "is a file" if existing == real else f"cannot be made: {str(existing)!r} is a file"
        raise ConfigurationError(f"{flag}: {str(path)!r} {what}; give a folder")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise ConfigurationError(f"{flag}: no permission to write in {str(existing)!r}; give another folder")


def _real(path: Path, flag: str) -> Path:
    with configuring(flag):
        try:
            real = Path(os.path.realpath(path))
            real.exists()  # a name that is too long raises here
        except ValueError as error:
            raise ConfigurationError(f"{flag}: {str(path)!r} is not a path: {error}") from error
        return real


def _check_file(path: Path, real: Path, flag: str) -> None:
    if real.is_dir():
        raise ConfigurationError(f"{flag}: {str(path)!r} is a folder; give a file")
    if real.exists():
        if not os.access(real, os.W_OK):
            raise ConfigurationError(f"{flag}: no permission to write {str(path)!r}; give another file")
        return
    folder = real.parent
    if not folder.exists():
        raise ConfigurationError(f"{flag}: cannot write {str(path)!r}: no folder {str(folder)!r}; make it first")
    if not folder.is_dir():
        raise ConfigurationError(
            f"{flag}: cannot write {str(path)!r}: {str(folder)!r} is not a folder; give another file"
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigurationError(f"{flag}: no permission to write in {str(folder)!r}; give another folder")
