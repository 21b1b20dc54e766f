"""The table of a sweep: a row for each point, in the order of the axes, whatever ran it.

table                                   prints as much of it as the terminal has room for
table.columns                           ("gpus", "batch", "days", "error")
table.column("days")                    [46.6, None, ...]        None where a row has no such result
table.failed                            the rows with an error
table.to_csv("sweep.csv")               also to_json, to_parquet, to_pandas, to_report
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import frozen

from ...errors import InvalidArgumentError
from ...graph.display.html import notebook_output, table as html_table
from ...graph.display.visible import shortened, visible
from ...graph.suggestions import suggestion
from .axes import AxisValue
from .results import ERROR, ResultValue

if TYPE_CHECKING:
    from .results import ComputedRow

_LINES = 24  # of a terminal
_COLUMNS = 80
_AROUND = 4  # lines of a text beside its rows: headings, dots, the count, a prompt
_CELL = 40  # letters of a cell


@frozen
class SweepRow:
    """A point: the values of its axes, and its results, or its error. `hash` is what a file of rows knows it by."""

    axes: Mapping[str, AxisValue]
    results: Mapping[str, ResultValue]
    error: str | None
    hash: str

    @classmethod
    def of(cls, axes: Mapping[str, AxisValue], hash_of_point: str, computed: ComputedRow) -> SweepRow:
        """A row of what was computed of a point."""
        return cls(axes, computed.results or {}, computed.error, hash_of_point)


@frozen(slots=False, repr=False)
class SweepTable:
    """Rows in the order of the axes. Equal tables have equal rows, whatever executor ran the sweep."""

    axes: tuple[str, ...]
    rows: tuple[SweepRow, ...]

    @cached_property
    def results(self) -> tuple[str, ...]:
        """The names of results, in the order in which rows first have them."""
        return tuple(dict.fromkeys(name for row in self.rows for name in row.results))

    @property
    def columns(self) -> tuple[str, ...]:
        """Axes, results, and `error`."""
        return (*self.axes, *self.results, ERROR)

    @property
    def failed(self) -> tuple[SweepRow, ...]:
        """The rows with an error."""
        return tuple(row for row in self.rows if row.error is not None)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[SweepRow]:
        return iter(self.rows)

    def column(self, name: str) -> list[AxisValue]:
        """The cells of a column, None where a row has none; InvalidArgumentError for a name that is no column."""
        if name not in self.columns:
            raise InvalidArgumentError(f"the table has no column {name!r}{suggestion(name, self.columns)}")
        if name == ERROR:
            return [row.error for row in self.rows]
        return [row.axes[name] if name in self.axes else row.results.get(name) for row in self.rows]

    def cells(self) -> list[list[ResultValue]]:
        """The rows as lists of texts, numbers and None, a cell for each column."""
        results = self.results
        return [
            [*map(_plain_cell, row.axes.values()), *(row.results.get(name) for name in results), row.error]
            for row in self.rows
        ]

    def to_csv(self, path: str | Path) -> None:
        """Writes the table as CSV; texts that a spreadsheet would take for formulas have an apostrophe before them."""
        from .table_files import table_csv, write_file

        write_file(path, table_csv(self).encode("utf-8", "replace"))

    def to_json(self, path: str | Path) -> None:
        """Writes the table as one JSON object: the names of `axes` and `results`, and `rows[]` by column."""
        from .table_files import json_text, write_file

        write_file(path, json_text(self).encode())

    def to_parquet(self, path: str | Path) -> None:
        """Writes the table as Parquet; UnimplementedError without pyarrow, which the extra `parquet` brings.

        Raises InvalidArgumentError for whole numbers beyond 64 bits.
        """
        from .table_files import parquet_bytes, write_file

        write_file(path, parquet_bytes(self))

    def to_pandas(self) -> Any:  # Any: a `pandas.DataFrame`, whose types a checker need not have
        """The table as a `pandas.DataFrame`; UnimplementedError without pandas."""
        from .table_files import pandas_of_table

        return pandas_of_table(self)

    def to_report(self, path: str | Path, *, title: str = "", subtitle: str = "", command: str = "") -> None:
        """Writes a page with the table and a chart of a result along an axis; raises as `write_table_report`."""
        from .table_files import write_page_of_table

        write_page_of_table(self, path, title=title, subtitle=subtitle, command=command)

    def __repr__(self) -> str:
        width, height = shutil.get_terminal_size((_COLUMNS, _LINES))
        return "\n".join(_lines(self, width, max(height, _LINES) - _AROUND))

    def _repr_html_(self) -> str:
        rows = [[cell_text(cell) for cell in row] for row in self.cells()]
        return notebook_output(_counts(self), html_table(self.columns, rows, left=len(self.axes)))


def _plain_cell(value: AxisValue) -> ResultValue:
    """A value of an axis as a cell: a path as its text, a list as its items."""
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return str(value) if isinstance(value, Path) else value


def cell_text(cell: ResultValue) -> str:
    """A cell as people read it: numbers to six digits."""
    if cell is None:
        return ""
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)


def _counts(table: SweepTable) -> str:
    failed = f", {len(table.failed):,} with an error" if table.failed else ""
    return f"{len(table):,} rows{failed}"


def _lines(table: SweepTable, width: int, most_rows: int) -> Iterator[str]:
    """The first and the last rows, and as many columns as there is room for."""
    rows = [[shortened(visible(cell_text(cell)), _CELL) for cell in row] for row in table.cells()]
    headings = [shortened(visible(name), _CELL) for name in table.columns]
    if not table.failed:
        headings, rows = headings[:-1], [row[:-1] for row in rows]
    upper = len(rows) if len(rows) <= most_rows else (most_rows + 1) // 2
    kept = [*rows[:upper], *(rows[len(rows) - most_rows // 2 :] if upper < len(rows) else [])]
    widths = [max(map(len, column)) for column in zip(headings, *kept, strict=True)]
    shown = _fitting(widths, width)
    left_out = len(widths) - len(shown)
    for number, row in enumerate([headings, *kept]):
        if number == upper + 1 and upper < len(rows):
            yield "..."
        yield "  ".join(row[place].rjust(widths[place]) for place in shown).rstrip()
    yield _counts(table) + (f", {left_out} more columns" if left_out else "")


def _fitting(widths: Sequence[int], width: int) -> list[int]:
    """The places of the columns that fit a width, with two blanks between them; one at least."""
    shown, used = [0], widths[0]
    for place in range(1, len(widths)):
        if used + 2 + widths[place] <= width:
            shown.append(place)
            used += 2 + widths[place]
    return shown
