"""Kernels that read and write whole files, and find files by patterns.

A name may begin with "file://"; other file systems than that of the machine are refused, in TensorFlow's words.
"""

from __future__ import annotations

import os
import re
from io import FileIO
from pathlib import Path

import numpy as np

from ....errors import UnimplementedError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ....graph.formats.storage import file_errors
from ..checks import require
from ..registry import simple
from .patterns import matching_files

_SCHEME = re.compile(rb"([A-Za-z][A-Za-z0-9.]*)://")
_LOCAL = b"file"


def split_scheme(name: bytes) -> tuple[bytes, str]:
    """ "file://" or nothing, and the path that follows; UnimplementedError for any other scheme."""
    scheme = _SCHEME.match(name)
    if scheme is None:
        return b"", os.fsdecode(name)
    if scheme[1] != _LOCAL:
        shown = name.decode(errors="replace")
        raise UnimplementedError(f"File system scheme '{scheme[1].decode()}' not implemented (file: '{shown}')")
    return scheme[0], os.fsdecode(name[scheme.end() :])


def _name(filename: Array) -> str:
    shape = shape_text(np.shape(filename))
    require(np.ndim(filename) == 0, f"Input filename tensor must be scalar, but had shape: {shape}")
    return split_scheme(np.asarray(filename).item())[1]


def _read(filename: Array) -> Array:
    path = _name(filename)
    with file_errors(path), FileIO(path) as file:
        return np.array(file.readall(), object)


simple("ReadFile", _read)


def _write(filename: Array, contents: Array) -> None:
    """Replaces the whole content; the folder is made if need be."""
    path, shape = _name(filename), shape_text(np.shape(contents))
    require(np.ndim(contents) == 0, f"Contents tensor must be scalar, but had shape: {shape}")
    folder = os.path.split(path)[0]
    if folder:
        with file_errors(folder):
            Path(folder).mkdir(parents=True, exist_ok=True)
    with file_errors(path), FileIO(path, "wb") as file:
        rest = memoryview(np.asarray(contents).item())
        while rest:
            rest = rest[file.write(rest) :]


simple("WriteFile", _write)


def _matching(pattern: Array) -> Array:
    """The files of one pattern or of several, sorted by name; a file of two patterns occurs twice."""
    patterns = np.asarray(pattern)
    shape = shape_text(patterns.shape)
    require(patterns.ndim <= 1, f"Input patterns tensor must be scalar or vector, but had shape: {shape}")
    names: list[bytes] = []
    for text in patterns.reshape(-1).tolist():
        scheme, path = split_scheme(text)
        names += [scheme + os.fsencode(name) for name in matching_files(path)]
    return np.array(sorted(names), object)


simple("MatchingFiles", _matching)
