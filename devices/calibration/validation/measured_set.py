"""What a set of measurements is to validation, and what a model answers about its rows.

A set says how its rows are read from a folder and which jobs predict them. A job holds rows to fit to and the keys of
rows to predict, and nothing else, so jobs may run in any order and in any process:

    fit rows     --\\
                    jobs(fit, test)  ->  job: rows 0, 2, 5 of test  ->  Answer for these rows
    keys of test --/                     job: rows 1, 3, 4 of test  ->  Answer for these rows

A new set is one module with a `MeasuredSet`, listed in `sets.py`, or handed to `validate` by who knows more than this
floor does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from attrs import field, frozen

from ....graph.arrays import Flags, Floats
from .rows import Indices, MeasuredRows

UNKNOWN = "unknown"


class PredictedBounds(NamedTuple):
    """Predicted values of one measured column, in its unit, with the bounds of 80 % intervals; NaN where unknown."""

    value: Floats
    low: Floats
    high: Floats


@frozen(eq=False)
class RowPredictions:
    """Predictions of some rows: by measured column, with a provenance each; and by null model and column.

    Null models are there to compare with. A row about which nothing is known is NaN and has provenance "unknown".
    `labels` are predicted labels by their column, "" where none is predicted. `fits` says which rows are possible;
    None: all.
    """

    columns: Mapping[str, PredictedBounds]
    provenance: tuple[str, ...]
    nulls: Mapping[str, Mapping[str, Floats]]
    labels: Mapping[str, tuple[str, ...]] = field(factory=dict, kw_only=True)
    fits: Flags | None = field(default=None, kw_only=True)

    def take(self, rows: Indices) -> RowPredictions:
        """What is said of these rows."""
        return RowPredictions(
            {name: PredictedBounds(*(part[rows] for part in bounds)) for name, bounds in self.columns.items()},
            tuple(self.provenance[row] for row in rows),
            {null: {name: column[rows] for name, column in by.items()} for null, by in self.nulls.items()},
            labels={name: tuple(column[row] for row in rows) for name, column in self.labels.items()},
            fits=None if self.fits is None else self.fits[rows],
        )


class RankedRows(NamedTuple):
    """Which rows of a set are alternatives by `column`, of which less is better: rows by name.

    `models` are rows of one model, in whatever way it runs; `choices` rows of one model on one machine with one batch,
    of which somebody picks one.
    """

    column: str
    models: Mapping[str, Indices]
    choices: Mapping[str, Indices]


class Job(NamedTuple):
    """The rows that `run` answers for; `run` can be pickled. A job of more than a second or so is long."""

    rows: Indices
    run: Callable[[], RowPredictions]
    is_long: bool = False


class Fold(NamedTuple):
    """Rows that are predicted from the others of the same file, for one part of the report."""

    part: str | None
    fit: Indices
    test: Indices


@frozen
class MeasuredSet:
    """A set by name: its files, its rows, its jobs.

    `files` are the file names (patterns) that belong to the set, `beside` names of files that its rows are joined with.
    `parts` names the part of the report that each row to predict belongs to, None if there are no parts. A set that is
    not `is_fitted` needs no fit rows. `digits` are those of a prediction in a file; `by` names key columns by whose
    values the report splits the errors, the system first; `by_measured` returns further splits by what was measured:
    rows by name, by the name of the split. `ranked` says which rows are alternatives. `published` are mean errors in
    percent that others have on such rows, by measured column and name.
    """

    name: str
    files: str
    measured: tuple[str, ...]
    read: Callable[[Sequence[Path], bool], MeasuredRows]
    jobs: Callable[[MeasuredRows | None, MeasuredRows], Sequence[Job]]
    parts: Callable[[MeasuredRows | None, MeasuredRows], Sequence[str | None]]
    folds: Callable[[MeasuredRows, int], Sequence[Fold]]
    is_fitted: bool = True
    digits: int = 6
    by: tuple[str, ...] = ("system",)
    beside: tuple[str, ...] = ()
    by_measured: Callable[[MeasuredRows], Mapping[str, Mapping[str, Indices]]] | None = None
    ranked: Callable[[MeasuredRows], RankedRows] | None = None
    published: Mapping[str, Mapping[str, float]] = field(factory=dict)

    def paths(self, folder: Path) -> list[Path]:
        """The files of this set in a folder, sorted by name."""
        return sorted(path for path in folder.glob(self.files) if path.is_file())


def no_parts(fit: MeasuredRows | None, test: MeasuredRows) -> Sequence[str | None]:
    """Every row belongs to the whole."""
    return [None] * len(test)


def unknown(rows: MeasuredRows, nulls: Iterable[str] = ()) -> RowPredictions:
    """The answer of somebody who knows nothing."""
    nothing = np.full(len(rows), np.nan)
    return RowPredictions(
        {name: PredictedBounds(nothing, nothing, nothing) for name in rows.measured},
        (UNKNOWN,) * len(rows),
        {null: dict.fromkeys(rows.measured, nothing) for null in nulls},
    )


def assembled(rows: MeasuredRows, jobs: Sequence[Job], answers: Sequence[RowPredictions]) -> RowPredictions:
    """One answer for all rows from those of the jobs; what no job answers for is unknown."""
    names = list(dict.fromkeys(name for answer in answers for name in answer.nulls))
    whole = unknown(rows, names)
    columns = {name: PredictedBounds(*(part.copy() for part in bounds)) for name, bounds in whole.columns.items()}
    nulls = {null: {name: column.copy() for name, column in by.items()} for null, by in whole.nulls.items()}
    provenance = list(whole.provenance)
    labels = {name: [""] * len(rows) for answer in answers for name in answer.labels}
    fits = np.ones(len(rows), np.bool_)
    for job, answer in zip(jobs, answers, strict=True):
        for name, bounds in answer.columns.items():
            for mine, theirs in zip(columns[name], bounds, strict=True):
                mine[job.rows] = theirs
        for null, by in answer.nulls.items():
            for name, column in by.items():
                nulls[null][name][job.rows] = column
        for row, text in zip(job.rows, answer.provenance, strict=True):
            provenance[row] = text
        for name, texts in answer.labels.items():
            for row, text in zip(job.rows, texts, strict=True):
                labels[name][row] = text
        if answer.fits is not None:
            fits[job.rows] = answer.fits
    return RowPredictions(
        columns, tuple(provenance), nulls, labels={name: tuple(texts) for name, texts in labels.items()}, fits=fits
    )
