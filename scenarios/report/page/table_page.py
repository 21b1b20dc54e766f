"""The page of a table, with a chart of one of its numbers over one of its axes, such as those of a sweep.

table_page("bandwidth", [TableColumn("gpus", "GPUs"), TableColumn("ns", "step time", "ns")], [(1, 90), (2, 50)],
           axes=["gpus"], values=["ns"])
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import NamedTuple

from ....errors import InvalidArgumentError
from .page_data import Document, Page
from .step_page import common_document

Cell = int | float | str | bool | None


class TableColumn(NamedTuple):
    """A column: its key, and what its heading says."""

    key: str
    title: str
    unit: str = ""


def table_page(
    title: str,
    columns: Sequence[TableColumn],
    rows: Sequence[Sequence[Cell]],
    *,
    axes: Sequence[str],
    values: Sequence[str],
    subtitle: str = "",
    command: str = "",
) -> Page:
    """The page of a table; raises as `table_record`."""
    table = table_record(columns, rows, axes=axes, values=values)
    return Page({**common_document("table", title, subtitle, command), "table": table}, {})


def table_record(
    columns: Sequence[TableColumn],
    rows: Sequence[Sequence[Cell]],
    *,
    axes: Sequence[str],
    values: Sequence[str],
) -> Document:
    """A table as pages have it. `axes` and `values` are keys: what a chart may go along, and the numbers it may show.

    A cell is None where there is nothing. Raises InvalidArgumentError for a row of another length, a number that is not
    finite, two columns of one key, and a key that no column has.
    """
    keys = [column.key for column in columns]
    if len(set(keys)) < len(keys):
        raise InvalidArgumentError(f"the table has two columns of one key among {keys}; give each its own")
    for what, named in (("axis", axes), ("value", values)):
        for key in named:
            if key not in keys:
                raise InvalidArgumentError(f"{what} {key!r} is no column of the table, which has {', '.join(keys)}")
    for number, row in enumerate(rows):
        _check_row(number, row, columns)
    return {
        "columns": [
            {**column._asdict(), "numeric": is_numeric([row[place] for row in rows])}
            for place, column in enumerate(columns)
        ],
        "rows": [list(row) for row in rows],
        "axes": list(axes),
        "values": list(values),
    }


def _check_row(number: int, row: Sequence[Cell], columns: Sequence[TableColumn]) -> None:
    if len(row) != len(columns):
        raise InvalidArgumentError(f"row {number} has {len(row)} cells and the table {len(columns)} columns")
    for column, cell in zip(columns, row, strict=True):
        if isinstance(cell, float) and not isfinite(cell):
            raise InvalidArgumentError(f"row {number}, {column.key!r}: {cell} is not finite; leave the cell out (None)")


def is_numeric(cells: Sequence[Cell]) -> bool:
    """Whether a column has numbers, and nothing but numbers and gaps."""
    present = [cell for cell in cells if cell is not None]
    return bool(present) and all(isinstance(cell, int | float) and not isinstance(cell, bool) for cell in present)
