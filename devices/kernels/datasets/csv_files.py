"""CSVDataset: the records of files of comma-separated fields, one scalar per column.

A record ends at a line end outside of quotes. An error ends its record only: the next element is the next record.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.dtypes import Array, DataType, numpy_dtype
from ..checks import require, scalar_of, text_of
from ..registry import Construction, Kernel, kernel
from ..strings.csv_records import FieldReader, check_defaults, column
from .dataset import UNKNOWN, Dataset, Element, ElementSpec, Source, carrying_dataset
from .files import content_of, file_names, format_of
from .transformation import count_of

_NO_END = "Reached end of file without closing quoted field in record"


class _Dialect(NamedTuple):
    """How the text of a record is cut into fields."""

    delimiter: bytes
    quotes: bool
    end: re.Pattern[bytes]  # of a field without quotes

    @classmethod
    def of(cls, delimiter: bytes, quotes: bool) -> _Dialect:
        require(len(delimiter) == 1, "field_delim should be only 1 char")
        return cls(delimiter, quotes, re.compile(b"[" + re.escape(delimiter) + rb"\r\n]|\Z"))

    def record(self, text: bytes, i: int) -> tuple[list[bytes | InvalidArgumentError], int]:
        """The fields of the record at a place, or errors in their stead, and the place of the next record."""
        fields = []
        while True:
            field, i = self._quoted(text, i + 1) if self.quotes and text[i : i + 1] == b'"' else self._plain(text, i)
            fields.append(field)
            if text[i : i + 1] != self.delimiter:
                return fields, i + (2 if text[i : i + 2] == b"\r\n" else 1)
            i += 1

    def _plain(self, text: bytes, i: int) -> tuple[bytes | InvalidArgumentError, int]:
        found = self.end.search(text, i)
        end = found.start() if found else len(text)
        field = text[i:end]
        if self.quotes and b'"' in field:
            return InvalidArgumentError("Unquoted fields cannot have quotes inside"), end
        return field, end

    def _quoted(self, text: bytes, i: int) -> tuple[bytes | InvalidArgumentError, int]:
        """The field after an opening quote; a lone quote inside makes it wrong, and does not end it."""
        pieces, wrong = [], False
        while (quote := text.find(b'"', i)) >= 0:
            pieces.append(text[i:quote])
            after = text[quote + 1 : quote + 2]
            if after in (b"", b"\r", b"\n", self.delimiter):
                error = InvalidArgumentError("Quote inside a string has to be escaped by another quote")
                return error if wrong else b"".join(pieces), quote + 1
            wrong |= after != b'"'
            pieces.append(b'"')
            i = quote + (2 if after == b'"' else 1)
        return InvalidArgumentError(_NO_END), len(text)


@dataclass(frozen=True, slots=True, eq=False)
class _Records(Dataset):
    files: Sequence[bytes]
    compression: bytes
    header: bool
    dialect: _Dialect
    columns: Sequence[FieldReader]
    selected: frozenset[int]  # if empty, all that are not excluded
    excluded: frozenset[int]

    def iterator(self) -> _RecordsIterator:
        return _RecordsIterator(self)

    def cardinality(self) -> int:
        return UNKNOWN

    def element(self, fields: Sequence[bytes | InvalidArgumentError]) -> Element:
        """The values of the chosen fields; the first error, in the order of fields, is raised."""
        values: list[Array] = []
        for i, field in enumerate(fields):
            if isinstance(field, InvalidArgumentError):
                raise field
            if i in self.excluded or (self.selected and i not in self.selected):
                continue
            require(len(values) < len(self.columns), f"Expect {len(self.columns)} fields but have more in record")
            values.append(self._value(field, len(values)))
        have = len(values)
        require(have == len(self.columns), f"Expect {len(self.columns)} fields but have {have} in record")
        return tuple(values)

    def _value(self, field: bytes, k: int) -> Array:
        dtype = self.form.types[k]
        return np.array(self.columns[k](field, k, "record"), object if dtype == DataType.STRING else numpy_dtype(dtype))


class _RecordsIterator(Source):
    """A place in one of the files; a file that cannot be opened, or lacks its header, is left at once."""

    __slots__ = ("_dataset", "_number", "_place", "_text")

    def __init__(self, dataset: _Records) -> None:
        self._dataset = dataset
        self._number = 0
        self._place = 0
        self._text: bytes | None = None

    def take(self) -> Element | None:
        """As `Source.take`."""
        dataset = self._dataset
        while self._number < len(dataset.files):
            if self._text is None:
                self._open(dataset.files[self._number])
            elif self._place < len(self._text):
                fields, self._place = dataset.dialect.record(self._text, self._place)
                return dataset.element(fields)
            else:
                self._number, self._text = self._number + 1, None
        return None

    def _open(self, name: bytes) -> None:
        self._number += 1  # unless nothing is raised
        text, start = bytes(content_of(name, self._dataset.compression)), 0
        if self._dataset.header:
            fields, start = self._dataset.dialect.record(text, 0)
            wrong = not text or any(isinstance(field, InvalidArgumentError) for field in fields)
            require(not wrong, "Can't read header of file")
        self._number, self._place, self._text = self._number - 1, start, text


def _columns(indices: Array, name: str) -> list[int]:
    columns: list[int] = indices.reshape(-1).tolist()
    require(all(k >= 0 for k in columns), f"{name} should be non-negative indices")
    require(all(a < b for a, b in pairwise(columns)), f"{name} should be strictly increasing indices")
    return columns


@kernel("CSVDataset", "CSVDatasetV2", "ExperimentalCSVDataset")
def csv_dataset(node: Construction) -> Kernel:
    """The records of files, of all columns, of selected ones, or in the second version without excluded ones."""
    form = ElementSpec.of(node)
    count = len(form.types)

    def make(files: Array, compression: Array, buffer_size: Array, *rest: Any) -> Array:  # Any: strings among them
        header, delimiter, quotes, missing, select = rest[:5]
        defaults, exclude = rest[5 : 5 + count], rest[5 + count :]
        require(count_of(buffer_size) > 0, "buffer_size should be positive")
        check_defaults(defaults)
        selected = _columns(select, "select_cols")
        excluded = [k for indices in exclude for k in _columns(indices, "exclude_cols")]
        require(not (selected and excluded), "Either select_cols or exclude_cols should be empty")
        require(len(selected) in (0, count), "select_cols should match output size")
        na_value = text_of(missing, "na_value")
        columns = [column(dtype, default, na_value) for dtype, default in zip(form.types, defaults, strict=True)]
        dialect = _Dialect.of(text_of(delimiter, "field_delim"), bool(scalar_of(quotes, "use_quote_delim")))
        chosen = frozenset(selected), frozenset(excluded)
        form_name = format_of(compression)
        return carrying_dataset(
            _Records(form, file_names(files), form_name, bool(scalar_of(header, "header")), dialect, columns, *chosen)
        )

    return make
