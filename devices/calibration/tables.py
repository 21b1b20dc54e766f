"""Tables of measurements: a CSV file -> typed columns, or one error that names file, line and remedy.

    # NCCL 2.27                                       a comment
    system,num_gpus,latency_ms                        the header: the first line that is no comment
    h100_sxm,2,0.0091                                 row 0, line 3 of the file

    table = read_table(path, [Column("system"), Column("num_gpus", "count"), Column("latency_ms", "positive")])
    table.texts("system"), table.floats("latency_ms"), table.lines      ('h100_sxm',), [0.0091], (3,)

A header may itself begin with `#` ("# GPUs,global batch"): a line is one if most documented columns are in it. Columns
that nobody asked for are kept as texts. The unit of a column is in its name, and a column of the same name with another
unit is refused: nothing is converted silently.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from ...errors import InvalidArgumentError, NotFoundError
from ...graph.arrays import Floats, Numbers
from ...graph.suggestions import suggestion

CellKind = Literal["text", "count", "whole", "positive", "number", "flag"]
CellValues = Floats | Numbers | NDArray[np.bool_] | tuple[str, ...]

MOST_COUNT = 2**62
_UNITS = ("ns", "us", "ms", "s", "min", "bytes", "b", "kb", "mb", "gb", "kib", "mib", "gib", "fp16", "bf16", "fp32")
_UNITS_AT_END = re.compile(rf"(?P<stem>.+?)(?:_(?P<unit>{'|'.join(_UNITS)})| \((?P<bracket>{'|'.join(_UNITS)})\))")
_FLAGS = {"true": True, "false": False, "1": True, "0": False}


@frozen
class ColumnSpec:
    """A documented column: its name with the unit in it, and what its cells hold.

    "text"; "count", a whole number above 0; "whole", one from 0; "positive", a number above 0; "number", any finite
    number; "flag", True or False. A `needed` column must be in the header. Where `may_be_empty`, an empty cell is NaN
    (of a text, ""); a count and a whole number cannot be empty.
    """

    name: str
    kind: CellKind = "text"
    needed: bool = True
    may_be_empty: bool = False


@frozen(eq=False)
class MeasuredTable:
    """The rows of a file: the typed columns that were asked for, all cells as texts, and the line of each row."""

    path: Path
    columns: Mapping[str, CellValues]
    cells: Mapping[str, tuple[str, ...]]
    lines: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.lines)

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def texts(self, name: str) -> tuple[str, ...]:
        """A column as the file has it, spaces at the ends left out."""
        return self.cells[name]

    def floats(self, name: str) -> Floats:
        """A column of numbers; an empty cell is NaN."""
        return np.asarray(self.columns[name], dtype=np.float64)

    def counts(self, name: str) -> Numbers:
        """A column of whole numbers."""
        return np.asarray(self.columns[name], dtype=np.int64)

    def flags(self, name: str) -> NDArray[np.bool_]:
        """A column of True and False."""
        return np.asarray(self.columns[name], dtype=np.bool_)

    def where(self, row: int) -> str:
        """Where a row stands, as errors say it: "file.csv:12"."""
        return f"{self.path}:{self.lines[row]}"


def read_table(path: str | Path, columns: Sequence[ColumnSpec]) -> MeasuredTable:
    """The table in a file, of one row at least.

    Raises NotFoundError for a file that cannot be read, and InvalidArgumentError, which begins with "file:line:", for
    a header or a cell that is not as `columns` says and for too few rows.
    """
    file = Path(path)
    header, header_line, rows = _split(file, [column.name for column in columns])
    _check_header(header, columns, f"{file}:{header_line}")
    if not rows:
        raise InvalidArgumentError(f"{file}:{header_line}: 0 rows are too few; give at least 1 below the header")
    cells = {name: tuple(row[i] for _, row in rows) for i, name in enumerate(header)}
    lines = tuple(line for line, _ in rows)
    typed = {c.name: _typed(c, cells[c.name], file, lines) for c in columns if c.name in cells}
    return MeasuredTable(file, typed, cells, lines)


def header_of(path: str | Path, names: Sequence[str] = ()) -> tuple[str, ...]:
    """The column names of a file; `names` are those of which a header that begins with `#` holds most."""
    return tuple(_split(Path(path), names)[0])


def text_of(path: Path) -> str:
    """A file of measurements as text; NotFoundError or InvalidArgumentError where it cannot be."""
    try:
        return path.read_text("utf-8-sig")
    except OSError as error:
        raise NotFoundError(f"{path}: the file cannot be read: {error.strerror}; check the path") from None
    except UnicodeDecodeError:
        raise InvalidArgumentError(f"{path}: this is not text; measurements are CSV in UTF-8") from None


LineCells = tuple[int, list[str]]


def _split(file: Path, names: Sequence[str]) -> tuple[list[str], int, list[LineCells]]:
    """The header, its line, and the rows with their lines, all cells as texts."""
    header: list[str] | None = None
    header_line = 1
    rows: list[LineCells] = []
    for line, text in enumerate(text_of(file).splitlines(), 1):
        if not text.strip():
            continue
        cells = _cells(text, f"{file}:{line}")
        if header is None and text.startswith("#"):
            cells = _commented_header(cells, names)
            if cells:
                header, header_line = cells, line
        elif text.startswith("#"):
            continue
        elif header is None:
            header, header_line = cells, line
        elif len(cells) != len(header):
            raise InvalidArgumentError(
                f"{file}:{line}: {len(cells)} cells, but the header has {len(header)} columns; "
                "write one cell for each column"
            )
        else:
            rows.append((line, cells))
    if header is None:
        raise InvalidArgumentError(f"{file}:1: the file has no header; its first line names the columns")
    return header, header_line, rows


def _cells(text: str, where: str) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([text], strict=not text.startswith("#")))]
    except csv.Error as error:
        raise InvalidArgumentError(f"{where}: this is no line of a CSV file: {error}; check its quotes") from None


def _commented_header(cells: list[str], names: Sequence[str]) -> list[str]:
    """The header that a line beginning with `#` is, [] if it is a comment."""
    without = [cells[0].removeprefix("#").strip(), *cells[1:]]
    if 2 * len(set(without) & {name.removeprefix("# ") for name in names}) <= len(names):
        return []
    return cells if cells[0] in names else without


def _check_header(header: list[str], columns: Sequence[ColumnSpec], where: str) -> None:
    for name in header:
        if header.count(name) > 1:
            raise InvalidArgumentError(f"{where}: there are two columns {name!r}; leave one of them out")
    for column in columns:
        if column.name in header:
            continue
        other = _of_another_unit(column.name, header)
        if other is not None:
            raise InvalidArgumentError(
                f"{where}: the column {other!r} has another unit than the documented {column.name!r}; "
                f"convert its values and call it {column.name!r}"
            )
        if column.needed:
            raise InvalidArgumentError(
                f"{where}: the column {column.name!r} is missing{suggestion(column.name, header)}"
            )


def _stem(name: str) -> str | None:
    match = _UNITS_AT_END.fullmatch(name)
    return match["stem"] if match else None


def _of_another_unit(name: str, header: Sequence[str]) -> str | None:
    stem = _stem(name)
    if stem is None:
        return None
    return next((other for other in header if other == stem or _stem(other.lower()) == stem), None)


def _typed(column: ColumnSpec, cells: Sequence[str], file: Path, lines: Sequence[int]) -> CellValues:
    """The cells of one column as its kind; the first wrong one is an error."""
    if column.kind == "text":
        for line, cell in zip(lines, cells, strict=True):
            if not cell and not column.may_be_empty:
                raise InvalidArgumentError(f"{file}:{line}: {column.name!r} is empty; write a text")
        return tuple(cells)
    read = {"count": _count, "whole": _whole, "positive": _positive, "number": _number, "flag": _flag}[column.kind]
    values = []
    for line, cell in zip(lines, cells, strict=True):
        try:
            empty = not cell and column.may_be_empty and column.kind not in ("count", "whole", "flag")
            values.append(math.nan if empty else read(cell))
        except ValueError as error:
            raise InvalidArgumentError(f"{file}:{line}: {column.name} = {cell!r} {error}") from None
    if column.kind == "flag":
        return np.array(values, dtype=np.bool_)
    if column.kind in ("count", "whole"):
        return np.array(values, dtype=np.int64)
    return np.array(values, dtype=np.float64)


def _number(cell: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        raise ValueError("is no number; write one without its unit, which the header has") from None
    if not math.isfinite(value):
        raise ValueError("is not finite; leave the row out")
    return value


def _positive(cell: str) -> float:
    value = _number(cell)
    if value <= 0:
        raise ValueError("must be above 0; leave out what was not measured")
    return value


def _count(cell: str) -> int:
    return _whole(cell, 1)


def _whole(cell: str, least: int = 0) -> int:
    value = _number(cell)
    if value != int(value) or not least <= value < MOST_COUNT:
        raise ValueError(f"must be a whole number from {least}")
    return int(cell) if cell.isascii() and cell.isdecimal() else int(value)


def _flag(cell: str) -> bool:
    if cell.lower() not in _FLAGS:
        raise ValueError("must be True or False")
    return _FLAGS[cell.lower()]
