"""Lines of a table as plain values: what a fit in another process gets, and what tells one fit from another.

TableLines.of(table, rows)      cells (("# GPUs", "64"), ...) and measured values of each line, and the folder
lines.rows()                    [[TrainingRow], [TrainingRow], ...], the runs of each line
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Self

from attrs import evolve

from ....devices.calibration.validation.rows import MeasuredRows
from ....errors import PartitaError
from .training_row import TrainingRow
from .training_tables import TABLES, TrainingTable


class TableLines(NamedTuple):
    """Lines by table and folder; of each the cells of its keys and its measured values, by column."""

    table: str
    folder: Path
    cells: tuple[tuple[tuple[str, str], ...], ...]
    measured: tuple[tuple[tuple[str, float], ...], ...]

    @classmethod
    def of(cls, table: TrainingTable, rows: MeasuredRows) -> Self:
        """The lines of rows that were read from one file."""
        numbers = range(len(rows))
        return cls(
            table.name,
            folder_of(rows),
            tuple(tuple((name, column[i]) for name, column in rows.texts.items()) for i in numbers),
            tuple(tuple((name, float(column[i])) for name, column in rows.measured.items()) for i in numbers),
        )

    def rows(self, folders: Sequence[Path] = ()) -> list[list[TrainingRow]]:
        """The runs of each line; none of a line that cannot be. Files beside are looked for in more `folders`, too."""
        return [
            self._of_line(dict(cells), dict(measured), [self.folder, *folders])
            for cells, measured in zip(self.cells, self.measured, strict=True)
        ]

    def _of_line(
        self, cells: Mapping[str, str], measured: Mapping[str, float], folders: Sequence[Path]
    ) -> list[TrainingRow]:
        try:
            rows = TABLES[self.table].rows(cells, folders)
        except PartitaError:
            return []
        return [evolve(row, measured={name: measured[name] for name in row.columns}) for row in rows]


def folder_of(rows: MeasuredRows) -> Path:
    """The folder of the file that rows were read from."""
    return Path(rows.places[0].rpartition(":")[0]).parent
