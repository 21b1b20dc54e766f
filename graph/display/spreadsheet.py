"""Cells of CSV that no spreadsheet takes for a formula: a formula can send what is in the sheet elsewhere.

    csv_cell("=1+1")      '=1+1        spreadsheets take the apostrophe for the sign of a text
    csv_cell(-1)          -1           a number stays one
    csv_cell(None)        ""

A text is quoted if it begins with = + - @, a tab or the end of a line. Names and texts come from graphs and files of
others.
"""

from __future__ import annotations

from typing import TypeVar

_BEGIN_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n")
_Cell = TypeVar("_Cell", str, int, float)


def csv_cell(value: _Cell | None) -> _Cell | str:
    """A value as CSV has it."""
    if isinstance(value, str) and value.startswith(_BEGIN_FORMULAS):
        return f"'{value}"
    return "" if value is None else value
