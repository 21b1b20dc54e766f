"""The hash of a point: by it a file of rows knows what has been computed, whatever the order and the number of points.

It is of the values of the axes, the contents of the files that they name, the version of Partita, the name and the code
of the function, and a text of the caller: `version`, for what is seen in none of these, such as the functions that it
calls.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version as version_of
from pathlib import Path
from typing import NamedTuple

from ...errors import InvalidArgumentError
from .axes import AxisValue, SweepAxes, plain_value
from .functions import SweptFunction
from .results import ComputedRow

_DIGEST = 16  # bytes


class SweepPoint(NamedTuple):
    """The values of the axes, and the hash."""

    axes: Mapping[str, AxisValue]
    hash: str


class StoredRow(NamedTuple):
    """A point and what was computed of it."""

    point: SweepPoint
    row: ComputedRow


def swept_points(function: SweptFunction, axes: SweepAxes, version: str) -> list[SweepPoint]:
    """The points with their hashes, in order; each file is read once.

    Raises InvalidArgumentError where no point is left, and for a path where nothing is.
    """
    contents: dict[Path, str] = {}
    common = {"function": function.name, "code": function.code, "partita": partita_version(), "version": version}
    points = []
    for point in axes.points():
        files = {str(path): _content(path, contents) for path in function.files(point)}
        hashed = {**common, "axes": {name: plain_value(value) for name, value in point.items()}, "files": files}
        points.append(SweepPoint(point, text_hash(json.dumps(hashed, sort_keys=True))))
    if not points:
        raise InvalidArgumentError("no point meets all conditions of the sweep; change them or the axes")
    return points


def text_hash(text: str) -> str:
    """32 hexadecimal digits."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST).hexdigest()


def partita_version() -> str:
    """The version of the installed package; "" in a checkout that is not installed."""
    try:
        return version_of("partita")
    except PackageNotFoundError:
        return ""


def _content(path: Path, known: dict[Path, str]) -> str:
    """The hash of the bytes of a file, or of all files of a folder with their names."""
    if path not in known:
        try:
            known[path] = _hash_of_folder(path) if path.is_dir() else _hash_of_file(path)
        except OSError as error:
            raise InvalidArgumentError(f"{str(path)!r} cannot be read: {error.strerror}; give another path") from error
    return known[path]


def _hash_of_file(path: Path) -> str:
    digest = blake2b(digest_size=_DIGEST)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _hash_of_folder(path: Path) -> str:
    files = sorted(inner for inner in path.rglob("*") if inner.is_file())
    return text_hash(json.dumps([[inner.relative_to(path).as_posix(), _hash_of_file(inner)] for inner in files]))
