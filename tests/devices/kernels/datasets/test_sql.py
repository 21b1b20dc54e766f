"""Rows of SQLite databases."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partita.actors import open_session
from partita.errors import InvalidArgumentError, OutOfRangeError, UnknownError
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import DataType
from partita.graph.protos import GraphDef

ROWS = [(1, "x", 1.5, b"\0b"), (2, None, 2.5, None), (300, "zz", 3.0, b"q")]


@pytest.fixture
def path(tmp_path: Path) -> bytes:
    """A database with a table t of integers a, texts b, numbers c and blobs d."""
    with closing(sqlite3.connect(tmp_path / "rows.db")) as database:
        database.execute("create table t (a int, b text, c real, d blob)")
        database.executemany("insert into t values (?, ?, ?, ?)", ROWS)
        database.commit()
    return str(tmp_path / "rows.db").encode()


def query(path: bytes, text: bytes, types: list[DataType], driver: bytes = b"sqlite") -> GraphDef:
    b = GraphBuilder()
    attrs: dict[str, Any] = {"output_types": types, "output_shapes": [()] * len(types)}
    strings = [np.array(string, object) for string in (driver, path, text)]
    handle = b.op("IteratorV2", attrs={**attrs, "shared_name": b"", "container": b""})[0]
    b.op("MakeIterator", b.op("SqlDataset", *strings, attrs=attrs)[0], handle, name="init")
    b.op("IteratorGetNext", handle, name="next", attrs=attrs)
    return b.graph_def()


async def rows(graph: GraphDef, count: int) -> list[Any]:
    """All rows of `count` columns as Python values."""
    found: list[Any] = []
    async with open_session(graph, "cpu:1") as session:
        await session.run([], targets=["init"])
        while True:
            try:
                row = await session.run([f"next:{k}" for k in range(count)])
            except OutOfRangeError:
                return found
            found.append([np.asarray(value).item() for value in row])


async def test_an_element_is_a_row(path: bytes) -> None:
    """In the order of the query; what is missing is zero or empty."""
    types = [DataType.INT32, DataType.STRING, DataType.DOUBLE, DataType.STRING]
    expected = [[1, b"x", 1.5, b"\0b"], [2, b"", 2.5, b""], [300, b"zz", 3.0, b"q"]]
    assert await rows(query(path, b"select a, b, c, d from t order by a", types), 4) == expected


async def test_columns_are_converted_as_by_sqlite(path: bytes) -> None:
    """Small integers keep their low bits, numbers lose their fraction, a text of no number is zero."""
    types = [DataType.INT8, DataType.INT64, DataType.BOOL, DataType.STRING, DataType.DOUBLE]
    expected = [[1, 1, True, b"1.5", 0.0], [2, 2, True, b"2.5", 0.0], [44, 3, True, b"3.0", 0.0]]
    assert await rows(query(path, b"select a, c, a, c, b from t order by a", types), 5) == expected


@pytest.mark.parametrize(
    ("text", "types", "error", "message"),
    [
        (b"select a, c from t", [DataType.INT32], InvalidArgumentError, r"columns in query \(2\) must match .* \(1\)"),
        (b"select x from t", [DataType.INT32], UnknownError, "no such column: x: select x from t"),
        (b"delete from t", [DataType.INT32], UnknownError, "attempt to write a readonly database"),
    ],
)
async def test_a_query_that_fails_ends_the_pull(
    path: bytes, text: bytes, types: list[DataType], error: type[Exception], message: str
) -> None:
    """The database is read only."""
    with pytest.raises(error, match=message):
        await rows(query(path, text, types), 1)


async def test_what_cannot_be_a_column_is_refused(path: bytes) -> None:
    """Float32, as by TensorFlow; and databases of another sort."""
    with pytest.raises(InvalidArgumentError, match="Each element of `output_types_` must be one of: DT_STRING"):
        await rows(query(path, b"select c from t", [DataType.FLOAT]), 1)
    with pytest.raises(InvalidArgumentError, match="The database type, mysql, is not supported"):
        await rows(query(path, b"select a from t", [DataType.INT32], b"mysql"), 1)
