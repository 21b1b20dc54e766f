"""Tables of sweeps as CSV, JSON, Parquet, pandas and pages. The same table gives the same bytes.

A number that JSON and CSV lack is one of the texts "nan", "inf" and "-inf"; in Parquet and pandas it is itself. In
Parquet a column of whole numbers and others is one of floats, a column of numbers and texts one of texts.
"""

from __future__ import annotations

import json
from importlib import import_module
from io import BytesIO
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...devices.timing.saved.whole_file import write_whole
from ...errors import InvalidArgumentError, UnimplementedError
from ...graph.display.spreadsheet import csv_text

if TYPE_CHECKING:
    from .results import ResultValue
    from .table import SweepTable

INSTALL_PARQUET = "pip install 'partita[parquet]'"
_MIN, _MAX = -(2**63), 2**63 - 1


def write_file(path: str | Path, content: bytes) -> None:
    """Writes a file whole or not at all; OSError where it cannot be written."""
    write_whole(path, content)


def table_csv(table: SweepTable) -> str:
    """Headings, then rows; lines end in LF."""
    return csv_text([table.columns, *(map(_finite, row) for row in table.cells())])


def json_document(table: SweepTable) -> dict[str, object]:
    """The table as an object of JSON."""
    rows = [dict(zip(table.columns, map(_finite, row), strict=True)) for row in table.cells()]
    return {"axes": list(table.axes), "results": list(table.results), "rows": rows}


def json_text(table: SweepTable) -> str:
    """That object as a text."""
    return json.dumps(json_document(table), indent=2, allow_nan=False) + "\n"


def _finite(cell: ResultValue) -> ResultValue:
    return str(cell) if isinstance(cell, float) and not isfinite(cell) else cell


def parquet_bytes(table: SweepTable) -> bytes:
    """The table as a file of Parquet; raises as `SweepTable.to_parquet`."""
    arrow = parquet_package()
    columns = [
        arrow.array(_uniform(list(column), name)) for name, column in zip(table.columns, _columns(table), strict=True)
    ]
    file = BytesIO()
    parquet = import_module("pyarrow.parquet")
    parquet.write_table(arrow.table(columns, names=list(table.columns)), file)
    return file.getvalue()


def parquet_package() -> Any:  # Any: a module of an extra, whose types a checker need not have
    """pyarrow; UnimplementedError without it."""
    try:
        return import_module("pyarrow")
    except ImportError:
        raise UnimplementedError(f"Parquet needs the package pyarrow; install it with {INSTALL_PARQUET}") from None


def _columns(table: SweepTable) -> list[tuple[ResultValue, ...]]:
    return list(zip(*table.cells(), strict=True))


def _uniform(column: list[ResultValue], name: str) -> list[ResultValue]:
    """Cells of one type, and None."""
    kinds = {type(cell) for cell in column if cell is not None}
    if kinds == {int} and not all(cell is None or _MIN <= int(cell) <= _MAX for cell in column):
        raise InvalidArgumentError(f"column {name!r} has numbers beyond 64 bits, which Parquet has no type for")
    if kinds == {int, float}:
        return [None if cell is None else float(cell) for cell in column]
    return [None if cell is None else str(cell) for cell in column] if len(kinds) > 1 else column


def pandas_of_table(table: SweepTable) -> Any:  # Any: a `pandas.DataFrame`, likewise
    """The table as pandas has it; raises as `SweepTable.to_pandas`."""
    try:
        pandas = import_module("pandas")
    except ImportError:
        raise UnimplementedError("the table is one of pandas, which is not installed: pip install pandas") from None
    return pandas.DataFrame(dict(zip(table.columns, map(list, _columns(table)), strict=True)))


def write_page_of_table(
    table: SweepTable, path: str | Path, *, title: str = "", subtitle: str = "", command: str = ""
) -> None:
    """A page with the table, and a chart of a result along an axis; raises as `write_table_report`."""
    from ..report.page.report import write_table_report  # loads what draws pages of steps, too
    from ..report.page.table_page import TableColumn, is_numeric

    columns = _columns(table)
    cells = [[_charted(cell) for cell in row] for row in table.cells()]
    numeric = [name for name, column in zip(table.columns, columns, strict=True) if is_numeric(column)]
    write_table_report(
        [TableColumn(name, name) for name in table.columns],
        cells,
        path,
        axes=list(table.axes),
        values=[name for name in table.results if name in numeric],
        title=title,
        subtitle=subtitle,
        command=command,
    )


def _charted(cell: ResultValue) -> ResultValue:
    return None if isinstance(cell, float) and not isfinite(cell) else cell
