"""SqlDataset: the rows of a query to a SQLite database. The database is opened, and asked, at the first element."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....errors import InvalidArgumentError, UnknownError
from ....graph.dtypes import Array, DataType, dtype_name, numpy_dtype
from ..checks import require, text_of
from ..registry import Construction, Kernel, kernel
from .dataset import UNKNOWN, Dataset, Element, Form, Source, carrying_dataset

_INTEGERS = (DataType.INT8, DataType.INT16, DataType.INT32, DataType.INT64, DataType.UINT8, DataType.UINT16)
_CASTS = {DataType.STRING: "text", DataType.DOUBLE: "real", **dict.fromkeys((*_INTEGERS, DataType.BOOL), "integer")}
"""the type that SQLite converts a column to, by the type of the component"""


class _RowsIterator(Source):
    __slots__ = ("_database", "_dataset", "_rows")

    def __init__(self, dataset: _Rows) -> None:
        self._dataset = dataset
        self._database: sqlite3.Connection | None = None
        self._rows: sqlite3.Cursor | None = None

    def take(self) -> Element | None:
        """As `Source.take`; the database is closed at the end."""
        if self._rows is None:
            self._open()
        assert self._rows is not None  # `_open` sets it
        row = self._rows.fetchone() if self._database is not None else None
        if row is None:
            self._close()
            return None
        types = self._dataset.form.types
        return tuple(self._converted(value, dtype) for value, dtype in zip(row, types, strict=True))

    def _open(self) -> None:
        dataset = self._dataset
        try:
            self._database = sqlite3.connect(f"file:{dataset.path}?mode=ro", uri=True, check_same_thread=False)
            self._rows = self._database.execute(dataset.query)
        except sqlite3.Error as error:
            raise UnknownError(f"Prepare() failed: [1] {error}: {dataset.query}") from None
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
            return np.array((cast or "").encode(), object)
        if dtype == DataType.BOOL:
            return np.array(bool(cast))
        return np.array(cast or 0, np.float64 if dtype == DataType.DOUBLE else np.int64).astype(numpy_dtype(dtype))


@dataclass(frozen=True, slots=True, eq=False)
class _Rows(Dataset):
    path: str
    query: str

    def iterator(self) -> _RowsIterator:
        return _RowsIterator(self)

    def cardinality(self) -> int:
        return UNKNOWN


@kernel("SqlDataset", "ExperimentalSqlDataset")
def sql_dataset(node: Construction) -> Kernel:
    """An element for each row, a scalar for each column."""
    form = Form.of(node)
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
        return carrying_dataset(_Rows(form, np.asarray(path).item().decode(), np.asarray(query).item().decode()))

    return make
