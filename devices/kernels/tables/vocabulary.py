"""Tables in text files: one entry per line; keys and values are columns, line numbers or whole lines.

Lines are numbered from 0. Column -1 is the line's number, -2 the whole line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ....errors import InvalidArgumentError, OutOfRangeError
from ....graph.dtypes import Array, DataType, dtype_name, numpy_dtype
from ....graph.formats.storage import read_file
from ..checks import require
from .lookup_table import array_of

_LINE_NUMBER, _WHOLE_LINE = -1, -2
_INTEGERS = frozenset({DataType.INT32, DataType.INT64})
_FLOATS = frozenset({DataType.FLOAT, DataType.DOUBLE})
_INTEGER = re.compile(rb"\s*[-+]?[0-9]+\s*")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Which columns of a file to read, the number of lines (None: all), the delimiter, and the first line number."""

    key_column: int
    value_column: int
    size: int | None
    delimiter: bytes
    offset: int

    def read(self, path: str, key_type: DataType, value_type: DataType) -> tuple[Array, Array]:
        """Keys and values, in the order of the lines.

        Raises the file system's error, InvalidArgumentError if columns or types do not fit the file, and
        OutOfRangeError for an empty file.
        """
        require(len(self.delimiter) == 1, "delimiter should be only 1 char")
        _check_column("Key", "key", self.key_column, key_type)
        _check_column("Value", "value", self.value_column, value_type)
        keys, values = [], []
        for number, line in self._lines(path):
            columns = self._columns(path, number, line)
            keys.append(self._item(line, columns, self.key_column, number, key_type))
            values.append(self._item(line, columns, self.value_column, number, value_type))
        return array_of(keys, key_type, (len(keys),)), array_of(values, value_type, (len(values),))

    def _lines(self, path: str) -> Iterator[tuple[int, bytes]]:
        content = read_file(path)
        if not content:
            raise OutOfRangeError("Read less bytes than requested")
        lines = content.removesuffix(b"\n").split(b"\n")
        if not (self.size is None or len(lines) >= self.size):
            raise InvalidArgumentError(f"Invalid vocab_size in {path}: expected {self.size} but got {len(lines)}")
        position = 0
        for number, line in enumerate(lines[: self.size]):
            position += len(line) + 1
            text = line.replace(b"\r", b"")
            require(bool(text), f"Invalid content in {path}: empty line found at position {position}.")
            yield number, text

    def _columns(self, path: str, number: int, line: bytes) -> list[bytes]:
        """The columns of a line, if any are used."""
        needed = max(self.key_column, self.value_column) + 1
        if not needed:
            return []
        columns = line.split(self.delimiter)
        if len(columns) < needed:
            raise InvalidArgumentError(
                f"Invalid number of columns in {path} line {number} ({line.decode('utf-8', 'replace')}) : "
                f"expected at least {needed} got {len(columns)}"
            )
        return columns

    def _item(self, line: bytes, columns: list[bytes], column: int, number: int, dtype: DataType) -> Any:
        """A key or a value of a line."""  # Any: a Python scalar of any element type
        if column == _LINE_NUMBER:
            return number + self.offset
        return _parsed(line if column == _WHOLE_LINE else columns[column], number, dtype)


def _check_column(title: str, what: str, column: int, dtype: DataType) -> None:
    if column == _LINE_NUMBER and dtype is not DataType.INT64:
        raise InvalidArgumentError(
            f"{title} index for line number requires table {what} dtype of int64, got {dtype_name(dtype)}"
        )
    if column == _WHOLE_LINE and dtype is not DataType.STRING and dtype not in _INTEGERS:
        raise InvalidArgumentError(
            f"{title} index for whole line requires string or integer table {what}, got {dtype_name(dtype)}"
        )


def _parsed(text: bytes, number: int, dtype: DataType) -> Any:
    """The value in a text; InvalidArgumentError if it is not one of that type."""
    if dtype is DataType.STRING:
        return text
    if not (dtype in _INTEGERS or dtype in _FLOATS):
        raise InvalidArgumentError(f"Data type {dtype_name(dtype)} not supported.")
    try:
        if dtype in _FLOATS:
            return float(text)
        if _INTEGER.fullmatch(text):
            return numpy_dtype(dtype).type(int(text))
    except (ValueError, OverflowError):
        pass
    field = text.decode("utf-8", "replace")
    raise InvalidArgumentError(f"Field {field} in line {number} is not a valid {dtype_name(dtype)}.")
