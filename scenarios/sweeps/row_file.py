"""Rows of a sweep in a file, so that a sweep that was interrupted goes on: one SQLite database, rows as JSON.

    sweep    function, axes           whose rows these are; written once
    rows     hash, axes, results, error

Only the process that drives the sweep writes, and it has the file locked from the beginning to the end: a second one is
refused. Rows are committed as they come, all that have ended since the last look in one transaction; until then they
are in a rollback journal beside the file, never in shared memory, so the file may be on a network file system. If the
process is killed, whenever that is, the next one finds every row that was committed, and none twice: the hash is the
key.

A row with an error is written too, and is computed again by the next run. Rows of other values, files, code or versions
stay in the file, for the run that goes back to them.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import Any

from ...errors import FailedPreconditionError, InvalidArgumentError
from .axes import plain_value
from .points import StoredRow
from .results import ComputedRow, ResultValue

_APPLICATION = int.from_bytes(b"pswp")  # in the head of the file: `file` and we know it by that
_FORMAT = 1
_PATIENCE_S = 1.0  # for the lock of a process that is ending
_NEW = """
CREATE TABLE sweep (function TEXT NOT NULL, axes TEXT NOT NULL);
CREATE TABLE rows (hash TEXT PRIMARY KEY, axes TEXT NOT NULL, results TEXT, error TEXT);
"""


class RowFile:
    """The open file, which no other process can open meanwhile."""

    def __init__(self, path: str | Path, connection: sqlite3.Connection) -> None:
        self._path = path
        self._connection = connection

    def computed_rows(self) -> dict[str, ComputedRow]:
        """By hash the rows without an error."""
        with _told(self._path):
            found = self._connection.execute("SELECT hash, results FROM rows WHERE error IS NULL").fetchall()
        return {key: ComputedRow(_results(text), None) for key, text in found}

    def add(self, rows: Iterable[StoredRow]) -> None:
        """Writes rows, in place of those of the same hash, and commits them."""
        values = [
            (
                point.hash,
                json.dumps({name: plain_value(value) for name, value in point.axes.items()}),
                None if row.results is None else _text(row.results),
                row.error,
            )
            for point, row in rows
        ]
        with _told(self._path), _transaction(self._connection):
            self._connection.executemany("INSERT OR REPLACE INTO rows VALUES (?, ?, ?, ?)", values)


def _text(results: Mapping[str, ResultValue]) -> str:
    """Results as JSON; a number that JSON lacks is a list with its text, ["inf"], as no result is a list."""
    finite = {name: [str(value)] if _is_odd(value) else value for name, value in results.items()}
    return json.dumps(finite, allow_nan=False)


def _results(text: str) -> dict[str, ResultValue]:
    return {name: float(value[0]) if isinstance(value, list) else value for name, value in json.loads(text).items()}


def _is_odd(value: ResultValue) -> bool:
    return isinstance(value, float) and not isfinite(value)


@contextmanager
def opened_rows(path: str | Path, function: str, axes: Sequence[str]) -> Iterator[RowFile]:
    """The file, made if missing, for a sweep of that function and these axes.

    Raises FailedPreconditionError while another process has it, InvalidArgumentError for a file of something else or of
    another sweep, and where it cannot be written.
    """
    with _told(path):
        connection = sqlite3.connect(path, timeout=_PATIENCE_S, isolation_level=None)
    try:
        with _told(path):
            # The lock is taken by the first transaction and kept until the end.
            connection.executescript("PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = FULL;")
            with _transaction(connection):
                _check(connection, path, function, list(axes))
            connection.execute("PRAGMA journal_mode = DELETE")
        yield RowFile(path, connection)
    finally:
        connection.close()


def _check(connection: sqlite3.Connection, path: str | Path, function: str, axes: list[str]) -> None:
    """Makes the tables of a new file, or looks whose rows are in it."""
    if not _number(connection, "SELECT count(*) FROM sqlite_schema"):
        for statement in filter(str.strip, _NEW.split(";")):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {_FORMAT}")
        connection.execute("INSERT INTO sweep VALUES (?, ?)", (function, json.dumps(axes)))
        return
    if _number(connection, "PRAGMA application_id") != _APPLICATION:
        raise InvalidArgumentError(f"{str(path)!r} is a database of something else; give another file")
    if _number(connection, "PRAGMA user_version") != _FORMAT:
        raise InvalidArgumentError(f"{str(path)!r} has rows of another version of Partita; give another file")
    stored_function, stored_axes = connection.execute("SELECT function, axes FROM sweep").fetchone()
    if (stored_function, json.loads(stored_axes)) != (function, axes):
        raise InvalidArgumentError(
            f"{str(path)!r} has the rows of a sweep of {stored_function} over {', '.join(json.loads(stored_axes))}, "
            f"not of {function} over {', '.join(axes)}; give another file"
        )


def _number(connection: sqlite3.Connection, query: str) -> Any:  # Any: sqlite's
    return connection.execute(query).fetchone()[0]


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All of the block is in the file afterwards, or nothing."""
    connection.execute("BEGIN EXCLUSIVE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


@contextmanager
def _told(path: str | Path) -> Iterator[None]:
    """Errors of the database as ours, which name the file."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", None)
        if code is not None and code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise FailedPreconditionError(
                f"{str(path)!r} is being written by another sweep; wait for its end, or give another file"
            ) from None
        if code is not None and code & 0xFF in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            raise InvalidArgumentError(f"{str(path)!r} is no file of rows: {error}; give another file") from None
        raise InvalidArgumentError(f"{str(path)!r} cannot be used: {error}; look at its folder and rights") from error
