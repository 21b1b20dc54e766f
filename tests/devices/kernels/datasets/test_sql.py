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
from tests.devices.kernels.harness import run

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


def contents(folder: Path) -> dict[str, bytes]:
    """The files in a folder."""
    return {file.name: file.read_bytes() for file in folder.iterdir()}


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
        (b"delete from t", [DataType.INT32], UnknownError, "not authorized: delete from t"),
        (
            b"select abs(column1) from (values (1), (-9223372036854775807 - 1))",
            [DataType.INT64],
            UnknownError,
            r"Step\(\) failed: \[1\] integer overflow",
        ),
        (b"select \xff", [DataType.INT64], InvalidArgumentError, "UTF-8"),
    ],
)
async def test_a_query_that_fails_ends_the_pull(
    path: bytes, text: bytes, types: list[DataType], error: type[Exception], message: str
) -> None:
    """With SQLite's words, or TensorFlow's."""
    with pytest.raises(error, match=message):
        await rows(query(path, text, types), 1)


async def test_what_cannot_be_a_column_is_refused(path: bytes) -> None:
    """Float32, as by TensorFlow; and databases of another sort."""
    with pytest.raises(InvalidArgumentError, match="Each element of `output_types_` must be one of: DT_STRING"):
        await rows(query(path, b"select c from t", [DataType.FLOAT]), 1)
    with pytest.raises(InvalidArgumentError, match="The database type, mysql, is not supported"):
        await rows(query(path, b"select a from t", [DataType.INT32], b"mysql"), 1)


# What would change, create or name other files, were it carried out.
WRITING = [
    "drop table t",
    "delete from t",
    "insert into t select * from t",
    "update t set a = 0",
    "with x as (select 1) delete from t",
    "create table u (x)",
    "create temp table u (x)",
    "create virtual table u using fts5(x)",
    "alter table t rename to u",
    "update sqlite_master set sql = ''",
    "vacuum",
    "vacuum into 'new.db'",
    "attach 'new.db' as other",
    "pragma journal_mode = wal",
    "pragma writable_schema = on",
    "reindex",
    "analyze",
    "begin immediate",
    "savepoint s",
    "select load_extension('new')",
    "select a from t; drop table t",
    "select writefile('new.db', 'x')",
]


@pytest.mark.parametrize("text", WRITING)
async def test_a_query_only_reads(path: bytes, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every other statement is refused; no file is changed, and none is new."""
    folder = Path(path.decode()).parent
    monkeypatch.chdir(folder)
    before = contents(folder)
    with pytest.raises((UnknownError, InvalidArgumentError), match=r"Prepare|number of columns"):
        await rows(query(path, text.encode(), [DataType.INT64]), 1)
    assert contents(folder) == before


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"values (1), (2)", [[1], [2]]),
        (
            b"with recursive c(x) as (values (1) union all select x + 1 from c where x < 3) select x from c",
            [[1], [2], [3]],
        ),
        (b"-- all\nselect max(a) from t;", [[300]]),
        (b"select value from json_each('[7, 8]')", [[7], [8]]),
        (b"select a from v", [[2]]),
        (b"select rowid from words where words match 'other'", [[2]]),
    ],
)
async def test_whatever_reads_is_a_query(path: bytes, text: bytes, expected: list[list[int]]) -> None:
    """Also common tables, views, and the virtual tables that SQLite brings."""
    with closing(sqlite3.connect(path.decode())) as database:
        database.execute("create view v as select a from t where b is null")
        database.execute("create virtual table words using fts5(x)")
        database.executemany("insert into words values (?)", [("one",), ("the other",)])
        database.commit()
    assert await rows(query(path, text, [DataType.INT64]), 1) == expected


# Characters with a meaning in a URI, and the way to write others there.
AWKWARD = ["a%20b#c.db", "x.db?mode=rw&z=", "a b.db", "%2f", "ü+&;=@:,$.db", "file:x.db", "#", "?", "'\"\\.db"]


@pytest.mark.parametrize("name", AWKWARD)
@pytest.mark.parametrize("in_folder", [True, False])
async def test_a_path_is_taken_as_it_is(
    tmp_path: Path, name: str, in_folder: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Relative or not: the file of exactly that name is read, and none is created if there is none."""
    monkeypatch.chdir(tmp_path)
    path = str(tmp_path / name) if in_folder else name
    with pytest.raises(UnknownError, match="unable to open database file"):
        await rows(query(path.encode(), b"select 1", [DataType.INT64]), 1)
    assert not contents(tmp_path)
    with closing(sqlite3.connect(tmp_path / name)) as database:
        database.execute("create table t (a int)")
        database.execute("insert into t values (5)")
        database.commit()
    assert await rows(query(path.encode(), b"select a from t", [DataType.INT64]), 1) == [[5]]
    with pytest.raises(UnknownError, match="not authorized"):
        await rows(query(path.encode(), b"drop table t", [DataType.INT64]), 1)
    assert list(contents(tmp_path)) == [name]


async def test_a_database_without_a_file_is_empty() -> None:
    """Under SQLite's two names for it; a name that no file can have is refused."""
    for name in (b"", b":memory:"):
        assert await rows(query(name, b"select 4", [DataType.INT64]), 1) == [[4]]
    with pytest.raises(InvalidArgumentError, match="zero byte"):
        await rows(query(b"a\0b", b"select 4", [DataType.INT64]), 1)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_names_are_scalars(place: int) -> None:
    """Of the driver, the file and the query."""
    inputs: list[Any] = [np.array(text, object) for text in (b"sqlite", b"file", b"select \xff")]
    attrs: dict[str, Any] = {"output_types": (DataType.INT64,), "output_shapes": ((),)}
    assert run("SqlDataset", *inputs, **attrs).shape == ()
    inputs[place] = np.empty(0, object)
    with pytest.raises(InvalidArgumentError, match=r"must be a scalar, not shape \[0\]"):
        run("SqlDataset", *inputs, **attrs)


async def test_text_of_any_bytes_is_given(path: bytes) -> None:
    """TensorFlow's strings are bytes, and SQLite does not check its texts."""
    assert await rows(query(path, b"select cast(x'ff61' as text)", [DataType.STRING]), 1) == [[b"\xffa"]]
