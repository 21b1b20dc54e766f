"""Whether what a command is to write can be written, asked before anything is read or run.

Flows in: the paths that flags name. Flows out: nothing, or a ConfigurationError that names flag and path and says what
to do. Always holds: nothing is made, opened or changed by asking. A disk may still fill up later.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from .failure import ConfigurationError, configuring


def check_outputs(files: Mapping[str, Path | None], inputs: Mapping[str, Path | None]) -> None:
    """ConfigurationError unless each file can be written; flags map to paths, None where a flag is not given.

    `inputs` are what the command reads: to write over it, or to write two things to one file, is a mistake.
    """
    taken = {_real(path, flag): flag for flag, path in inputs.items() if path is not None}
    for flag, path in files.items():
        if path is not None:
            real = _real(path, flag)
            if real in taken and (real.is_file() or not real.exists()):
                raise ConfigurationError(f"{flag}: {str(path)!r} is what {taken[real]} names; give another file")
            taken[real] = flag
            _check_file(path, real, flag)


def check_folder(path: Path, flag: str) -> None:
    """ConfigurationError unless files can be written into the folder, which is made if it is missing."""
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
            raise ConfigurationError(f"{flag}: {str(path)!r} is no path: {error}") from error
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
        raise ConfigurationError(f"{flag}: cannot write {str(path)!r}: {str(folder)!r} is no folder; give another file")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigurationError(f"{flag}: no permission to write in {str(folder)!r}; give another folder")
