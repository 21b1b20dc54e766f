"""Rows of a file of measurements: key columns as the file prints them, and measured columns that may be empty.

A file is a CSV, whose lines that begin with "#" are comments (`tables.py`).
In `gemm_bf16.csv`

    system,m,n,k,latency_ms
    h100_sxm,8,3072,64,0.0032

`system`, `m`, `n` and `k` are keys, `latency_ms` is measured. Columns of other names are not read. A file to fit to has
a number above 0 in every measured cell; in a file to predict a measured cell may be empty, which is NaN here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, isfinite, nan
from pathlib import Path
from typing import Any

import numpy as np
from attrs import evolve, field, frozen
from numpy.typing import NDArray

from ....errors import InvalidArgumentError
from ....graph.arrays import Floats
from ..tables import CellKind, ColumnSpec, read_table

Indices = NDArray[np.intp]

TEXT, COUNT, WHOLE = "text", "count", "whole"
"""kinds of key columns: texts, whole numbers from 1, whole numbers from 0"""


@frozen(eq=False)
class MeasuredRows:
    """Rows of one set: `texts` and `keys` by key column, as printed and as values; `measured` by column, NaN if empty.

    `places` says where each row stands ("data/gemm_bf16.csv:7"), for errors. Key columns are in the file's order.
    `labels` are columns of texts that a fit may learn from and that rows to predict lack: "" there.
    """

    places: tuple[str, ...]
    texts: Mapping[str, tuple[str, ...]]
    keys: Mapping[str, NDArray[Any]]  # Any: int64 for counts, str for texts
    measured: Mapping[str, Floats]
    labels: Mapping[str, tuple[str, ...]] = field(factory=dict, kw_only=True)

    def __len__(self) -> int:
        return len(self.places)

    def take(self, indices: Indices) -> MeasuredRows:
        """These rows, in this order."""
        return MeasuredRows(
            tuple(self.places[i] for i in indices),
            {name: tuple(column[i] for i in indices) for name, column in self.texts.items()},
            {name: column[indices] for name, column in self.keys.items()},
            {name: column[indices] for name, column in self.measured.items()},
            labels={name: tuple(column[i] for i in indices) for name, column in self.labels.items()},
        )

    def where(self, column: str, value: object) -> Indices:
        """The indices of the rows with that key."""
        return np.flatnonzero(self.keys[column] == value)

    def unmeasured(self) -> MeasuredRows:
        """The same keys with every measured cell and label empty: what a fit may see of the rows it predicts."""
        nothing = {name: np.full(len(self), nan) for name in self.measured}
        return evolve(self, measured=nothing, labels={name: ("",) * len(self) for name in self.labels})

    def key(self, row: int) -> tuple[object, ...]:
        """The values of the key columns of one row, columns in order of their names."""
        return tuple(self.keys[name][row] for name in sorted(self.keys))

    def distinct(self, column: str) -> list[str]:
        """The values of a column of texts, sorted."""
        return sorted(set(self.keys[column].tolist()))


def read_csv(
    path: Path,
    keys: Mapping[str, str],
    measured: Sequence[str],
    *,
    labels: Sequence[str] = (),
    may_be_empty: bool,
) -> MeasuredRows:
    """The rows of a CSV with these key columns (a kind each by name), measured columns and labels.

    `may_be_empty` is about measured cells and labels. InvalidArgumentError names the file, the line and what to do.
    """
    kinds: Mapping[str, CellKind] = {TEXT: "text", COUNT: "count", WHOLE: "whole"}
    columns = [ColumnSpec(name, kinds[kind]) for name, kind in keys.items()]
    columns += [ColumnSpec(name, "positive", may_be_empty=may_be_empty) for name in measured]
    columns += [ColumnSpec(name, "text", needed=not may_be_empty, may_be_empty=may_be_empty) for name in labels]
    table = read_table(path, columns)
    places = tuple(map(table.where, range(len(table))))
    return MeasuredRows(
        places,
        {name: table.texts(name) for name in table.cells if name in keys},
        {name: np.array(table.texts(name)) if kind == TEXT else table.counts(name) for name, kind in keys.items()},
        {name: table.floats(name) for name in measured},
        labels={name: table.texts(name) if name in table else ("",) * len(table) for name in labels},
    )


def times(name: str, texts: Sequence[object], places: Sequence[str], *, may_be_empty: bool) -> Floats:
    """A measured column of a file that is no CSV, NaN if empty; InvalidArgumentError for what is no number above 0."""
    return np.array([_time(name, text, place, may_be_empty) for text, place in zip(texts, places, strict=True)])


def _time(name: str, text: object, place: str, may_be_empty: bool) -> float:
    if may_be_empty and text in ("", None):
        return nan
    try:
        value = float(str(text))
    except ValueError:
        value = inf
    if not isfinite(value) or value <= 0:
        raise InvalidArgumentError(
            f"{place}: {name} = {str(text)!r} must be a number above 0; correct it or leave out the row"
        )
    return value
