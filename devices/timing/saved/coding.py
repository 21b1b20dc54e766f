"""Columns of whole numbers -> narrow arrays that deflate well, with a description in JSON, and back.

    start_ns    4000 4400 4900     "differences"      4000 400 500      each less the one before
    end_ns      4400 4900 5200     "from:start_ns"    400 500 300       each less what that column has in its row
    runs        1 1 1              "plain"            1 1 1
    flops       2**70 ...          {"integers": ["1180591620717411303424", ...]}, in the document itself

A column is described by {"array": NAME, "coding": CODING}. "row" is the column 0, 1, 2, ...; a column that others are
counted from comes before them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from attrs import frozen

from ....errors import DataLossError
from ....graph.arrays import Numbers

if TYPE_CHECKING:
    from ..events import TextColumn
    from .archive import Column

_PLAIN, _DIFFERENCES, _FROM, _FROM_ROW = "plain", "differences", "from:", "from:row"
_SAFE = 1 << 62  # differences of smaller numbers have 64 bits
_LONGEST = 4000  # digits of an integer: Python reads no longer ones


class TextNumbers:
    """Texts that several columns have in common, numbered as they come."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def of(self, column: TextColumn) -> Numbers:
        """The numbers of the texts of a column; new texts come last, in order of first appearance."""
        own, texts, numbers = column.numbers, column.texts, self._numbers
        first = np.full(len(texts), -1)
        first[own[::-1]] = np.arange(len(own))[::-1]  # of equal numbers the first row is written last, and stays
        used = np.flatnonzero(first >= 0)
        used = used[np.argsort(first[used])]
        common = np.zeros(len(texts), np.int64)
        names = [texts[number] for number in used.tolist()]
        if not numbers:  # most often all differ; for a million names the loop below takes three times as long
            numbers.update(zip(names, range(len(names)), strict=True))
            if len(numbers) == len(names):
                common[used] = np.arange(len(names))
                return common[own]
            numbers.clear()
        common[used] = [numbers.setdefault(name, len(numbers)) for name in names]
        return common[own]

    @property
    def texts(self) -> list[str]:
        """The texts, by number."""
        return list(self._numbers)


class ColumnWriter:
    """Columns of equal length, as arrays by name and as descriptions."""

    def __init__(self, prefix: str = "") -> None:
        """`prefix` begins the names of arrays."""
        self.descriptions: dict[str, object] = {}
        self.arrays: dict[str, Column] = {}
        self._prefix = prefix

    def add(self, name: str, values: Numbers, base: tuple[str, Numbers] | None = None) -> None:
        """Adds a column, counted from `base`, a name and a column, if there is one."""
        if base is None or not (_is_safe(values) and _is_safe(base[1])):
            self._add(name, values, _PLAIN)
        else:
            self._add(name, values - base[1], f"{_FROM}{base[0]}")

    def add_differences(self, name: str, values: Numbers) -> None:
        """Adds a column of which neighbours are near each other."""
        if _is_safe(values):
            self._add(name, np.diff(values, prepend=np.zeros(1, np.int64)), _DIFFERENCES)
        else:
            self._add(name, values, _PLAIN)

    def _add(self, name: str, values: Numbers, coding: str) -> None:
        if values.dtype == object:  # beyond 64 bits
            self.descriptions[name] = {"integers": [str(value) for value in values.tolist()]}
        else:
            self.arrays[f"{self._prefix}{name}"] = values
            self.descriptions[name] = {"array": f"{self._prefix}{name}", "coding": coding}


def _is_safe(values: Numbers) -> bool:
    return values.dtype != object and -_SAFE < int(values.min(initial=0)) <= int(values.max(initial=0)) < _SAFE


@frozen
class ColumnDocument:
    """The description of a column."""

    array: str = ""
    coding: str = _PLAIN
    integers: tuple[str, ...] | None = None


class ColumnReader:
    """Columns by name, as they were before they were coded. DataLossError, with `where`, for what cannot be."""

    def __init__(
        self, documents: Mapping[str, ColumnDocument], arrays: Mapping[str, Column], length: int, where: str
    ) -> None:
        """Every column must have `length` numbers."""
        self._documents = documents
        self._arrays = arrays
        self._length = length
        self._where = where
        self._bases: dict[str, Numbers] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._documents

    def read(self, name: str, least: int | None = None, end: int | None = None) -> Numbers:
        """A column whose numbers must be `least` or more, and below `end`."""
        if name not in self._documents:
            raise self.damaged(f"it has no column {name!r}")
        document = self._documents[name]
        values = self._integers(document) if document.integers is not None else self._decoded(name, document)
        if len(values) != self._length:
            raise self.damaged(f"column {name!r} has {len(values):,} numbers, not {self._length:,}")
        low, high = (values.min(), values.max()) if len(values) else (0, 0)
        if len(values) and ((least is not None and low < least) or (end is not None and high >= end)):
            raise self.damaged(f"column {name!r} has numbers from {low} to {high}, which it cannot have")
        self._bases[name] = values
        return values

    def set_base(self, name: str, values: Numbers) -> None:
        """Others may be counted from a column that is not in the file itself."""
        self._bases[name] = values

    def _decoded(self, name: str, document: ColumnDocument) -> Numbers:
        values = whole_numbers(self._arrays, document.array, self._where)
        if document.coding == _PLAIN:
            return values
        if document.coding == _DIFFERENCES:
            return np.cumsum(values)
        base = (
            np.arange(len(values)) if document.coding == _FROM_ROW else self._bases.get(document.coding[len(_FROM) :])
        )
        if base is None or not document.coding.startswith(_FROM) or len(base) != len(values):
            raise self.damaged(f"column {name!r} has coding {document.coding!r} and {len(values):,} numbers")
        return values + base

    def _integers(self, document: ColumnDocument) -> Numbers:
        texts = document.integers or ()
        wrong = next((text for text in texts if not text.removeprefix("-").isdecimal() or len(text) > _LONGEST), None)
        if wrong is not None:
            raise self.damaged(f"{wrong[:40]!r} is no whole number")
        return np.array([int(text) for text in texts], object)

    def damaged(self, why: str) -> DataLossError:
        """The error for columns that cannot be."""
        return damaged(self._where, why)


def whole_numbers(arrays: Mapping[str, Column], name: str, where: str) -> Numbers:
    """An array of a file by name; DataLossError where there is none of whole numbers."""
    values = arrays.get(name)
    if values is None or values.dtype != np.int64:
        raise damaged(where, f"it has no array {name!r} of whole numbers")
    return values  # type: ignore[return-value]  # mypy does not narrow by the type of elements


def damaged(where: str, why: str) -> DataLossError:
    """The error for a file whose parts contradict each other."""
    return DataLossError(f"{where} is damaged: {why}; save the timeline anew")
