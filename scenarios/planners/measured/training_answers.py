"""What is said of the lines of a table, beside null models: lines to fit to and lines to predict -> predictions.

    predicted_lines((20 lines of many nodes, 72 of one node, 21 of B200s), 89 other lines of many nodes)
        one fit of the closed form's numbers to 113 runs; times of 89 steps by them, and by a constant share of the peak

No lines to fit to: the numbers of the catalog.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from ....devices.calibration.validation.measured_set import UNKNOWN, PredictedBounds, RowPredictions
from ....devices.calibration.validation.rows import Indices
from ....graph.arrays import Floats
from ..fitting import fit_numbers
from ..numbers import TrainingNumbers
from . import null_models as nulls
from .fit_rows import fit_rows
from .predicted_runs import PredictedRuns, predicted_runs
from .table_lines import TableLines
from .training_row import TIMES, Quantity, TrainingRow
from .training_tables import TABLES

_COLUMNS: Mapping[Quantity, str] = {
    "allocated_gib": "allocated",
    "state_gib": "state",
    "activations_gib": "activations",
}
"""columns of `PredictedRuns`"""


@cache
def fitted_numbers(sources: tuple[TableLines, ...]) -> TrainingNumbers:
    """One fit to all lines of some tables, whichever set asks for it."""
    return fit_numbers(fit_rows([row for lines in sources for of_line in lines.rows() for row in of_line]))


def predicted_lines(sources: tuple[TableLines, ...], asked: TableLines) -> RowPredictions:
    """The predictions of the lines `asked`, NaN for one that cannot be."""
    lines = asked.rows([lines.folder for lines in sources])
    rows = [row for of in lines for row in of]
    of_line = np.array([i for i, of in enumerate(lines) for _ in of], dtype=np.intp)
    said = predicted_runs(rows, fitted_numbers(sources) if sources else None)
    quantities = TABLES[asked.table].columns
    columns = {name: _Column(name, it, rows, of_line, len(lines)) for name, it in quantities.items()}
    fit = [row for lines in sources if lines.table == asked.table for of in lines.rows() for row in of]
    provenance, fits = [UNKNOWN] * len(lines), np.zeros(len(lines), np.bool_)
    for line, named, possible in zip(of_line.tolist(), said.provenance, said.fits.tolist(), strict=True):
        provenance[line], fits[line] = named, possible
    bounds = {name: column.bounds(said) for name, column in columns.items()}
    return RowPredictions(bounds, tuple(provenance), _nulls(list(columns.values()), rows, fit), fits=fits)


class _Column(NamedTuple):
    """A measured column of a table, and the runs of its lines."""

    name: str
    quantity: Quantity
    rows: Sequence[TrainingRow]
    of_line: Indices
    lines: int

    def of_ms(self, step_ms: Floats) -> Floats:
        """By line its value, from ms of a step by run."""
        pairs = zip(self.rows, step_ms.tolist(), strict=True)
        return self.of_runs(
            np.array([row.of_step_ms(self.name, ms) if self.name in row.columns else np.nan for row, ms in pairs])
        )

    def of_runs(self, values: Floats) -> Floats:
        """By line the value of its run that has this column."""
        column, own = np.full(self.lines, np.nan), [self.name in row.columns for row in self.rows]
        column[self.of_line[own]] = values[own]
        return column

    def bounds(self, said: PredictedRuns) -> PredictedBounds:
        """What is predicted; a part of memory is as uncertain as all of it. TFLOP/s are least for the longest time."""
        of = said.columns
        if self.quantity in TIMES:
            value, *ends = (self.of_ms(of[name]) for name in ("step_ms", "step_ms_low", "step_ms_high"))
        else:
            share = of[_COLUMNS[self.quantity]] / of["allocated"]
            value, *ends = (self.of_runs(share * of[f"allocated{end}"]) for end in ("", "_low", "_high"))
        return PredictedBounds(value, np.minimum(*ends), np.maximum(*ends))


def _nulls(
    columns: Sequence[_Column], rows: Sequence[TrainingRow], fit: Sequence[TrainingRow]
) -> dict[str, dict[str, Floats]]:
    """By null model its columns: a share of the peak for times, the sizes of parameters and rows for memory."""
    said: dict[str, dict[str, Floats]] = {}
    name, share = (nulls.CONSTANT, nulls.fitted_share(fit)) if fit else (nulls.HALF, 0.5)
    sizes = nulls.null_gib(rows)
    for column in columns:
        if column.quantity in TIMES:
            said.setdefault(name, {})[column.name] = column.of_ms(nulls.peak_ms(rows) / share)
        for null, by in sizes.items():
            if column.quantity in by:
                said.setdefault(null, {})[column.name] = column.of_runs(by[column.quantity])
    return said
