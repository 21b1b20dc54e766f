"""SqlDataset: the rows of a query to a SQLite database. The database is opened, and asked, at the first element.

A graph may come from anywhere, so its query may read and do nothing else: the file is opened read-only, which does not
keep `VACUUM INTO` and `ATTACH` from creating others, and SQLite asks `_permission` about every part of a statement.
"""

from __future__ import annotations

import os
import sqlite3
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import numpy as np

from ....errors import InvalidArgumentError, UnknownError
from ....graph.dtypes import Array, DataType, dtype_name, numpy_dtype
from ..checks import require, text_of
from ..registry import Construction, Kernel, kernel
from .dataset import UNKNOWN, Dataset, Element, ElementSpec, Source, carrying_dataset

_INTEGERS = (DataType.INT8, DataType.INT16, DataType.INT32, DataType.INT64, DataType.UINT8, DataType.UINT16)
_CASTS = {DataType.STRING: "text", DataType.DOUBLE: "real", **dict.fromkeys((*_INTEGERS, DataType.BOOL), "integer")}
"""the type that SQLite converts a column to, by the type of the component"""

_READING = frozenset(
    {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}  # no others
)
# What virtual tables, such as those of full-text search, ask for on their own when they are read. A query gains nothing
# by them: it may not modify the first, and the second is a number.
_VIRTUAL_TABLES = frozenset({(sqlite3.SQLITE_UPDATE, "sqlite_master"), (sqlite3.SQLITE_PRAGMA, "data_version")})
_WITHOUT_A_FILE = frozenset({"", ":memory:"})  # SQLite's names for an empty database


def _permission(action: int, first: str | None, *others: str | None) -> int:
    return sqlite3.SQLITE_OK if action in _READING or (action, first) in _VIRTUAL_TABLES else sqlite3.SQLITE_DENY


def _connected(path: str) -> sqlite3.Connection:
    """A database that can only be read. No character of its path has a meaning in the URI that says so."""
    require("\0" not in path, f"the path of a database has no zero byte: {path!r}")
    memory = path in _WITHOUT_A_FILE
    name = ":memory:" if memory else f"file://{quote(os.fsencode(os.path.abspath(path)))}?mode=ro"  # noqa: PTH100  # "//x" stays
    database = sqlite3.connect(name, uri=not memory, check_same_thread=False)
    database.text_factory = bytes
    database.set_authorizer(_permission)
    return database


class _RowsIterator(Source):
    __slots__ = ("_database", "_dataset", "_query", "_rows")

    def __init__(self, dataset: _Rows) -> None:
        self._dataset = dataset
        self._query = ""
        self._database: sqlite3.Connection | None = None
        self._rows: sqlite3.Cursor | None = None

    def take(self) -> Element | None:
        """As `Source.take`; the database is closed at the end."""
        if self._rows is None:
            self._open()
        assert self._rows is not None  # `_open` sets it
        try:
            row = self._rows.fetchone() if self._database is not None else None
        except sqlite3.Error as error:
            raise UnknownError(f"Step() failed: [1] {error}: {self._query}") from None
        if row is None:
            self._close()
            return None
        types = self._dataset.form.types
        return tuple(self._converted(value, dtype) for value, dtype in zip(row, types, strict=True))

    def _open(self) -> None:
        dataset = self._dataset
        self._query = _text(dataset.query)
        try:
            self._database = _connected(dataset.path)
            self._rows = self._database.execute(self._query)
        except (sqlite3.Error, sqlite3.Warning) as error:  # the latter is how Python 3.11 refuses a second statement
            raise UnknownError(f"Prepare() failed: [1] {error}: {self._query}") from None
        columns = len(self._rows.description or ())
        require(
            columns == len(dataset.form.types),
            f"The number of columns in query ({columns}) must match the number of elements in output_types "
            f"({len(dataset.form.types)}).",
        )

    def _close(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None

    def _converted(self, value: Any, dtype: DataType) -> Array:  # Any: what SQLite stores
        """A value as SQLite converts it; nothing is zero, or the empty string. Integers keep their low bits."""
        if dtype == DataType.STRING and isinstance(value, bytes):
            return np.array(value, object)
        assert self._database is not None  # it has given the value
        (cast,) = self._database.execute(f"select cast(? as {_CASTS[dtype]})", (value,)).fetchone()
        if dtype == DataType.STRING:
            return np.array(cast or b"", object)
        if dtype == DataType.BOOL:
            return np.array(bool(cast))
        return np.array(cast or 0, np.float64 if dtype == DataType.DOUBLE else np.int64).astype(numpy_dtype(dtype))


def _text(query: bytes) -> str:
    try:
        text = query.decode()
    except UnicodeDecodeError:
        text = "\0"
    require("\0" not in text, f"a query is UTF-8 without zero bytes: {query!r}")
    return text


@dataclass(frozen=True, slots=True, eq=False)
class _Rows(Dataset):
    path: str
    query: bytes

    def iterator(self) -> _RowsIterator:
        return _RowsIterator(self)

    def cardinality(self) -> int:
        return UNKNOWN


@kernel("SqlDataset", "ExperimentalSqlDataset")
def sql_dataset(node: Construction) -> Kernel:
    """An element for each row, a scalar for each column."""
    form = ElementSpec.of(node)
    if not set(form.types) <= set(_CASTS):
        names = ", ".join(f"DT_{dtype_name(dtype).upper()}" for dtype in (DataType.STRING, *_INTEGERS, DataType.BOOL))
        raise InvalidArgumentError(f"Each element of `output_types_` must be one of: {names}, DT_DOUBLE")

    def make(driver: Array, path: Array, query: Array) -> Array:
        name = text_of(driver, "driver_name").decode(errors="replace")
        require(
            name == "sqlite",
            f"The database type, {name}, is not supported by SqlDataset. The set of supported databases is: "
            "{'sqlite'}.",
        )
        return carrying_dataset(_Rows(form, os.fsdecode(text_of(path, "data_source_name")), text_of(query, "query")))

    return make
