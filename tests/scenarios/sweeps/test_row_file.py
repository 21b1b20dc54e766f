"""The file of rows: what is committed is there, for one process at a time, and only for the sweep that it is of."""

from __future__ import annotations

import json
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from partita.errors import FailedPreconditionError, InvalidArgumentError
from partita.scenarios.sweeps import row_file
from partita.scenarios.sweeps.points import StoredRow, SweepPoint
from partita.scenarios.sweeps.results import ComputedRow
from partita.scenarios.sweeps.row_file import opened_rows

AXES = ("a", "b")
ROWS = [
    StoredRow(SweepPoint({"a": 1, "b": Path("f")}, "h1"), ComputedRow({"x": 1.5, "t": "ü"}, None)),
    StoredRow(SweepPoint({"a": 2, "b": ("x", None)}, "h2"), ComputedRow(None, "ValueError: no")),
    StoredRow(SweepPoint({"a": 3, "b": True}, "h3"), ComputedRow({"x": float("inf"), "t": None}, None)),
]
DONE = {row.point.hash: row.row for row in ROWS if row.row.error is None}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file that has all rows."""
    path = tmp_path / "sweep.rows"
    with opened_rows(path, "m.f", AXES) as rows:
        assert rows.computed_rows() == {}
        rows.add(ROWS[:1])
        rows.add(ROWS[1:])
    return path


@pytest.fixture(autouse=True)
def _no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_file, "_PATIENCE_S", 0.0)


def test_rows_come_back(path: Path) -> None:
    """Those without an error, which are not computed again."""
    with opened_rows(path, "m.f", AXES) as rows:
        assert rows.computed_rows() == DONE
    assert sorted(it.name for it in path.parent.iterdir()) == ["sweep.rows"]


def test_rows_are_json_and_errors_are_kept(path: Path) -> None:
    """Anybody can read the file; nothing in it is pickled."""
    with closing(sqlite3.connect(path)) as connection:
        found = {row[0]: row[1:] for row in connection.execute("SELECT * FROM rows")}
        (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    assert json.loads(found["h1"][0]) == {"a": 1, "b": "f"}
    assert json.loads(found["h2"][0]) == {"a": 2, "b": ["x", None]}
    assert json.loads(found["h3"][1], parse_constant=pytest.fail) == {"x": ["inf"], "t": None}
    assert found["h2"][1:] == (None, "ValueError: no")
    assert mode == "delete"


def test_a_row_replaces_the_one_of_its_hash(path: Path) -> None:
    """That of an error, when it is computed again."""
    again = StoredRow(ROWS[1].point, ComputedRow({"x": 2.0}, None))
    with opened_rows(path, "m.f", AXES) as rows:
        rows.add([again])
    with opened_rows(path, "m.f", AXES) as rows:
        assert rows.computed_rows() == {**DONE, "h2": again.row}


def test_a_file_that_is_open_is_refused(path: Path) -> None:
    """A sweep has it from its beginning to its end, also while it does not write."""
    with (
        opened_rows(path, "m.f", AXES),
        pytest.raises(FailedPreconditionError, match="is being written by another sweep"),
        opened_rows(path, "m.f", AXES),
    ):
        pass
    with opened_rows(path, "m.f", AXES) as rows:
        assert rows.computed_rows() == DONE


def test_a_batch_is_written_whole_or_not_at_all(path: Path) -> None:
    """A row that cannot be written takes its batch with it."""
    broken = StoredRow(SweepPoint({"a": 5, "b": 6}, "h5"), ComputedRow({"x": object()}, None))  # type: ignore[dict-item]  # to fail
    good = StoredRow(SweepPoint({"a": 5, "b": 7}, "h6"), ComputedRow({"x": 1}, None))
    with opened_rows(path, "m.f", AXES) as rows:
        with pytest.raises(TypeError):
            rows.add([good, broken])
        assert rows.computed_rows() == DONE


@pytest.mark.parametrize(
    ("function", "axes"), [("m.g", AXES), ("m.f", ("a",)), ("m.f", ("b", "a")), ("m.f", ("a", "b", "c"))]
)
def test_the_file_of_another_sweep_is_refused(function: str, axes: tuple[str, ...], path: Path) -> None:
    """It says whose it is, and stays as it is."""
    before = path.read_bytes()
    with (
        pytest.raises(InvalidArgumentError, match=r"has the rows of a sweep of m\.f over a, b"),
        opened_rows(path, function, axes),
    ):
        pass
    assert path.read_bytes() == before


def write_text(path: Path) -> None:
    path.write_text("a table of somebody, which must not be lost; it is longer than the head of a database\n" * 9)


def write_other_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE mine (x)")
        connection.commit()


def make_folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (write_text, "is no file of rows"),
        (write_other_database, "is a database of something else"),
        (make_folder, "cannot be used"),
    ],
)
def test_other_files_are_refused(make: object, words: str, tmp_path: Path) -> None:
    """And stay as they are."""
    path = tmp_path / "other"
    assert callable(make)
    make(path)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(InvalidArgumentError, match=words), opened_rows(path, "m.f", AXES):
        pass
    assert (path.read_bytes() if path.is_file() else b"") == before


def test_a_file_of_another_format_is_refused(path: Path) -> None:
    """Of a later version, say."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 7")
    with pytest.raises(InvalidArgumentError, match="another version"), opened_rows(path, "m.f", AXES):
        pass


def test_an_empty_file_is_a_new_one(tmp_path: Path) -> None:
    """As after a process was killed while it made the tables."""
    path = tmp_path / "empty"
    path.touch()
    with opened_rows(path, "m.f", AXES) as rows:
        rows.add(ROWS)
    assert stat.S_ISREG(path.stat().st_mode)
    with opened_rows(path, "m.f", AXES) as rows:
        assert rows.computed_rows() == DONE
