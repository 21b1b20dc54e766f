"""A JSON document and columns of numbers -> one zip, and back.

    archive_bytes({"format": 1}, {"start_ns": array([0, 400, 900])})

    document.json       {"format":1}
    start_ns.npy        |u1 would not hold 900: <u2, 3 numbers
    both deflated

The same input gives the same bytes. What is read may come from anybody: how much memory it needs follows from what the
zip and the headers of the columns say, and is checked before any is taken.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from typing import Any, TypeAlias
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo
from zlib import error as ZlibError  # noqa: N812  # it is the name of a class

import numpy as np
from numpy.lib import format as npy

from ....errors import DataLossError, InvalidArgumentError
from ....graph.arrays import Floats, Numbers

Column: TypeAlias = Numbers | Floats
_DOCUMENT = "document.json"
_SUFFIX = ".npy"
_LEVEL = 4  # half the time of 6 for a few hundredths more bytes
_DATE = (1980, 1, 1, 0, 0, 0)  # the first that a zip can have
_OWNER_MAY_READ_AND_WRITE = 0o600 << 16
_UNIX = 3
_DTYPES = tuple(map(np.dtype, ("|u1", "|i1", "<u2", "<i2", "<u4", "<i4", "<i8")))
"""of whole numbers, the narrowest first"""
_FLOAT = np.dtype("<f8")
_KNOWN = [dtype.str.encode() for dtype in (*_DTYPES, _FLOAT)]
_WIDTH = 8  # bytes of a number once it is read
MOST_BYTES = 1 << 32
_FREE_BYTES, _MOST_RATIO = 1 << 28, 256
"""so many bytes may come out of any zip, and beyond them so many times its own size"""
_LONGEST_HEADER = 256
_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00(?P<size>..)"
    rb"(?P<text>\{'descr': '(?P<dtype>" + b"|".join(map(re.escape, _KNOWN)) + rb")', 'fortran_order': False, "
    rb"'shape': \((?P<count>[0-9]{1,15}),\), \} *\n)",
    re.DOTALL,
)
"""of a column of one dimension, version 1.0 of npy"""


def archive_bytes(document: Mapping[str, object], arrays: Mapping[str, Column]) -> bytes:
    """The zip of a document and of columns of int64 or float64, each of one dimension, by name.

    Raises InvalidArgumentError for more than may be read again.
    """
    entries = {_DOCUMENT: json.dumps(document, separators=(",", ":"), allow_nan=False).encode()}
    entries |= {f"{name}{_SUFFIX}": _npy_bytes(array) for name, array in arrays.items()}
    into = BytesIO()
    with ZipFile(into, "w") as file:
        for name, content in entries.items():
            info = ZipInfo(name, _DATE)
            info.create_system, info.external_attr, info.compress_type = _UNIX, _OWNER_MAY_READ_AND_WRITE, ZIP_DEFLATED
            file.writestr(info, content, compresslevel=_LEVEL)
    written = into.getvalue()
    needed = len(entries[_DOCUMENT]) + _WIDTH * sum(map(len, arrays.values()))
    if needed > _most_bytes(len(written)):
        raise InvalidArgumentError(f"{needed:,} bytes are more than a file may need in memory; write a shorter step")
    return written


def read_archive(data: bytes, where: str = "the archive") -> tuple[dict[str, Any], dict[str, Column]]:  # Any: JSON
    """The document and the columns of a zip, which have int64 or float64 again; `where` names it in errors.

    Raises DataLossError for anything that `archive_bytes` does not write.
    """
    with _naming_damage(where), ZipFile(BytesIO(data)) as file:
        entries = _entries(file, where)
        lengths = {name: _length(file, info, where) for name, info in entries.items()}
        needed = entries[_DOCUMENT].file_size + _WIDTH * sum(lengths.values())
        if needed > _most_bytes(len(data)):
            raise _damaged(where, f"{len(data):,} bytes of zip would need {needed:,} bytes of memory")
        document = _document(file.read(entries.pop(_DOCUMENT)), where)
        return document, {name.removesuffix(_SUFFIX): _column(file.read(info)) for name, info in entries.items()}


def _most_bytes(size: int) -> int:
    """The memory that a zip of some bytes may need."""
    return min(MOST_BYTES, _FREE_BYTES + _MOST_RATIO * size)


def _npy_bytes(array: Column) -> bytes:
    narrow = array.astype(_narrowest(array), copy=False)
    into = BytesIO()
    npy.write_array(into, np.ascontiguousarray(narrow), version=(1, 0), allow_pickle=False)
    return into.getvalue()


def _narrowest(array: Column) -> np.dtype[Any]:
    """The smallest type that holds all numbers of a column."""
    if array.dtype.kind == "f":
        return _FLOAT
    low, high = (int(array.min()), int(array.max())) if len(array) else (0, 0)
    return next(d for d in _DTYPES if np.iinfo(d).min <= low and high <= np.iinfo(d).max)


@contextmanager
def _naming_damage(where: str) -> Iterator[None]:
    """Whatever the libraries raise for bytes that are no zip, or no columns, is one error."""
    try:
        yield
    except (BadZipFile, ZlibError, EOFError, OSError, ValueError, RuntimeError, KeyError, IndexError) as error:
        raise _damaged(where, str(error)) from None


def _damaged(where: str, why: str) -> DataLossError:
    return DataLossError(f"{where} is damaged, or was not written by Partita: {why}; write it anew")


def _entries(file: ZipFile, where: str) -> dict[str, ZipInfo]:
    """The entries of a zip by name, with the document among them."""
    infos = file.infolist()
    entries = {info.filename: info for info in infos}
    if len(entries) < len(infos) or _DOCUMENT not in entries:
        raise _damaged(where, f"it has {len(infos)} entries, of which one must be {_DOCUMENT}, and none be there twice")
    for name, info in entries.items():
        if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED) or (name != _DOCUMENT and not name.endswith(_SUFFIX)):
            raise _damaged(where, f"it has an entry {name!r} of compression {info.compress_type}")
    return entries


def _length(file: ZipFile, info: ZipInfo, where: str) -> int:
    """How many numbers a column has, from its header; 0 for the document."""
    if info.filename == _DOCUMENT:
        return 0
    with file.open(info) as entry:
        dtype, count, begin = _header(entry.read(_LONGEST_HEADER))
    if info.file_size != begin + count * dtype.itemsize:
        raise _damaged(where, f"{info.filename!r} has {info.file_size:,} bytes for {count:,} numbers of type {dtype}")
    return count


def _header(content: bytes) -> tuple[np.dtype[Any], int, int]:
    """Type and length of a column, and where its numbers begin; ValueError for what is no column.

    numpy would evaluate the header as Python, and warn of and mend old ones; one pattern is all that is written.
    """
    found = _HEADER.match(content)
    if found is None or len(found["text"]) != int.from_bytes(found["size"], "little"):
        raise ValueError("a column has a header that is none of a column of numbers")
    return np.dtype(found["dtype"].decode()), int(found["count"]), found.end()


def _column(content: bytes) -> Column:
    dtype, count, begin = _header(content[:_LONGEST_HEADER])
    numbers = np.frombuffer(content, dtype, count, begin)
    return numbers.astype(np.float64) if dtype == _FLOAT else numbers.astype(np.int64)


def _document(content: bytes, where: str) -> dict[str, Any]:  # Any: JSON
    try:
        document = json.loads(content, parse_constant=_no_number)
    except RecursionError:
        raise _damaged(where, f"{_DOCUMENT} has lists in lists without end") from None
    if not isinstance(document, dict):
        raise _damaged(where, f"{_DOCUMENT} is no object")
    return document


def _no_number(text: str) -> object:
    raise ValueError(f"{_DOCUMENT} has {text}, which JSON does not know")
