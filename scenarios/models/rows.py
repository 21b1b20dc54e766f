"""Sizes from a row of a table of models: a CSV file with a column "model" and sizes in other columns.

Lines that begin with "#" are comments. A row says neither the number of layers nor how a router chooses.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ...errors import InvalidArgumentError, NotFoundError
from ...graph.suggestions import suggestion


@dataclass(frozen=True, slots=True)
class ModelRow:
    """One row, by column its text."""

    path: Path
    name: str
    texts: Mapping[str, str]

    def size(self, column: str) -> int:
        """A whole number; InvalidArgumentError where the row has none."""
        text = self.texts.get(column) or ""
        if not text.isdecimal():
            raise InvalidArgumentError(f"{self.path}: row {self.name!r} has no number in column {column!r}: {text!r}")
        return int(text)

    def refuse(self, *columns: str) -> None:
        """InvalidArgumentError where one of these columns is filled in: the row is of another family."""
        for column in columns:
            if self.texts.get(column):
                raise InvalidArgumentError(
                    f"{self.path}: row {self.name!r} has {column}={self.texts[column]}: it is of another family; "
                    "use MoeModel.from_row"
                )


def read_row(path: Path | str, name: str) -> ModelRow:
    """The row of a model; NotFoundError for a name without a row and for a missing file."""
    file = Path(path)
    try:
        lines = [line for line in file.read_text().splitlines() if line and not line.startswith("#")]
    except OSError as error:
        raise NotFoundError(f"{file}: {error.strerror or error}; give a table of models") from error
    rows = {row.get("model") or "": row for row in csv.DictReader(lines)}
    if name not in rows:
        raise NotFoundError(f"{file} has no row {name!r}{suggestion(name, rows)}")
    return ModelRow(file, name, rows[name])
