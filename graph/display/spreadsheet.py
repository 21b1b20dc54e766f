"""CSV with no cell that a spreadsheet takes for a formula, which could send what is in the sheet elsewhere.

    csv_text([["name", "n"], ["=1+1", -1], [None, 2]])      name,n
                                                            '=1+1,-1       the apostrophe is the sign of a text
                                                            ,2             None is an empty cell

A text is quoted so if it begins with = + - @, a tab or the end of a line. Names and texts come from graphs and files of
others. Lines end in LF; a cell with the end of a line in it, also a carriage return, is in double quotes.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable

CsvCell = str | int | float | None
_BEGIN_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n")


def csv_text(rows: Iterable[Iterable[CsvCell]]) -> str:
    """Rows as one text."""
    lines = _Lines()
    csv.writer(lines, lineterminator=_LINE_END).writerows([_safe(cell) for cell in row] for row in rows)
    return "".join(lines.written)


def _safe(cell: CsvCell) -> CsvCell:
    if isinstance(cell, str) and cell.startswith(_BEGIN_FORMULAS):
        return f"'{cell}"
    return cell


_LINE_END = "\r\n"  # for the writer quotes cells that have letters of it


class _Lines:
    """What the writer writes to, a line at a time."""

    def __init__(self) -> None:
        self.written: list[str] = []

    def write(self, line: str) -> None:
        """Takes a line with its end."""
        self.written.append(line.removesuffix(_LINE_END) + "\n")
