"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

_LONGEST = 100  # letters of the name: with a few more it must still be one that the disk takes


def write_whole(path: str | Path, content: bytes) -> None:
    """Writes a file beside its place, then puts it there: a reader sees the old file or the new one.

    What a link names is replaced, not the link; a pipe or a device gets the content and stays what it is. OSError where
    the file cannot be written; then nothing has changed.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        target.write_bytes(content)
        return
    beside = target.with_name(f".{target.name[:_LONGEST]}.{secrets.token_hex(4)}")
    try:
        with beside.open("xb") as file:
            file.write(content)
        if target.exists():
            beside.chmod(target.stat().st_mode & 0o777)
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
