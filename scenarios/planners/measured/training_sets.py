"""The sets of measured training runs for `partita validate`: how their rows are read, predicted, held out and compared.

    fit folder     llm_training_multi_node_a100.csv (some rows), ..._single_node_a100.csv, ..._b200_megatron.csv
                       one fit of the closed form's numbers to all rows of the three but those held out
    test folder    llm_training_multi_node_a100.csv (other rows): predicted with these numbers

Nothing is fitted to the tables of Megatron papers: numbers of the catalog predict them. Lines are held out one by one,
by whole models ("unseen model") and by numbers of GPUs ("unseen cluster size").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from attrs import frozen

from ....devices.calibration.validation.cross_validation import dealt_folds
from ....devices.calibration.validation.measured_set import Fold, Job, MeasuredSet, RankedRows, no_parts
from ....devices.calibration.validation.rows import Indices, MeasuredRows
from .simumax_table import MODELS
from .table_lines import TableLines, folder_of
from .training_answers import predicted_lines
from .training_row import TIMES, TrainingRow
from .training_tables import TABLES, TrainingTable
from .vtrain_tables import GPUS, PARAMETERS, STEP

UNSEEN_MODEL, UNSEEN_SIZE = "unseen model", "unseen cluster size"
MANY_NODES, ONE_NODE = "llm_training_multi_node_a100", "llm_training_single_node_a100"
B200 = "llm_training_b200_megatron"
LEARNED = (MANY_NODES, ONE_NODE, B200)
"""the tables that numbers are fitted to"""


def learned_lines(folder: Path) -> tuple[TableLines, ...]:
    """All lines of the tables in a folder that numbers are fitted to."""
    return tuple(_lines_of(TABLES[name], folder) for name in LEARNED if (folder / f"{name}.csv").is_file())


def _lines_of(table: TrainingTable, folder: Path) -> TableLines:
    return TableLines.of(table, table.read(folder / f"{table.name}.csv", may_be_empty=False))


@frozen
class _TrainingSet:
    """A table, and whether numbers are fitted to it and the others that are `LEARNED`."""

    table: TrainingTable

    @property
    def is_learned(self) -> bool:
        return self.table.name in LEARNED

    def read(self, paths: Sequence[Path], may_be_empty: bool) -> MeasuredRows:
        """The lines of the file."""
        return self.table.read(paths[0], may_be_empty)

    def jobs(self, fit: MeasuredRows | None, test: MeasuredRows) -> Sequence[Job]:
        """One job for all lines, with what the folder of the fit has of the other tables."""
        sources = () if fit is None else tuple(map(partial(self._source, fit), self._sources(folder_of(fit))))
        asked = TableLines.of(self.table, test)
        return [Job(np.arange(len(test)), partial(predicted_lines, sources, asked), is_long=bool(sources))]

    def _sources(self, folder: Path) -> list[str]:
        """The tables that numbers are fitted to."""
        return [name for name in LEARNED if name == self.table.name or (folder / f"{name}.csv").is_file()]

    def _source(self, fit: MeasuredRows, name: str) -> TableLines:
        """The lines of this table that are not held out, and all of another."""
        if name == self.table.name:
            return TableLines.of(self.table, fit)
        return _lines_of(TABLES[name], folder_of(fit))

    def folds(self, rows: MeasuredRows, count: int) -> Sequence[Fold]:
        """Lines, whole models and whole numbers of GPUs, dealt to `count` folds; one of all where nothing is fitted."""
        every = np.arange(len(rows))
        if not self.is_learned:
            return [Fold(None, np.array([], np.intp), every)]
        lines = TableLines.of(self.table, rows).rows()
        folds = dealt_folds(rows, count, [])
        for part, named in ((UNSEEN_MODEL, _model), (UNSEEN_SIZE, _size)):
            groups = list(_grouped(lines, named).values())
            held_out = [np.sort(np.concatenate(groups[k::count])) for k in range(min(count, len(groups)))]
            folds += [Fold(part, np.setdiff1d(every, test), test) for test in held_out if len(groups) > 1]
        return folds

    def ranked(self, rows: MeasuredRows) -> RankedRows:
        """Lines of one model, and of these the lines on as many GPUs with the same batch of sequences of one length."""
        column = next(name for name, quantity in self.table.columns.items() if quantity in TIMES)
        lines = TableLines.of(self.table, rows).rows()
        return RankedRows(column, _grouped(lines, _model), _grouped(lines, _choice))


def _model(row: TrainingRow) -> str:
    return row.model


def _size(row: TrainingRow) -> str:
    return f"{row.gpus} GPUs"


def _choice(row: TrainingRow) -> str:
    layers, length = row.step.model.layers, row.step.sequence_length
    return f"{row.model}, {layers} layers, {row.gpus} GPUs, {row.global_batch} sequences of {length}"


def _grouped(lines: Sequence[Sequence[TrainingRow]], named: Callable[[TrainingRow], str]) -> dict[str, Indices]:
    """The numbers of lines by what their run is called; a line that cannot be is in none."""
    groups: dict[str, list[int]] = {}
    for i, rows in enumerate(lines):
        if rows:
            groups.setdefault(named(rows[0]), []).append(i)
    return {name: np.array(of, dtype=np.intp) for name, of in groups.items()}


def _measured_set(
    name: str,
    by: tuple[str, ...],
    published: Mapping[str, Mapping[str, float]] | None = None,
    beside: tuple[str, ...] = (),
) -> MeasuredSet:
    of = _TrainingSet(TABLES[name])
    return MeasuredSet(
        name,
        f"{name}.csv",
        tuple(of.table.columns),
        of.read,
        of.jobs,
        no_parts,
        of.folds,
        is_fitted=of.is_learned,
        by=by,
        beside=beside,
        ranked=of.ranked if of.is_learned else None,
        published=published or {},
    )


TABLE5, MEMORY, TABLE1 = (name for name in TABLES if name not in LEARNED)
TRAINING_SETS = (
    _measured_set(
        MANY_NODES,
        (PARAMETERS, GPUS),
        {STEP: {"Calculon": 15.3, "vTrain": 14.7, "constant MFU": 17.9, "a line of 10 terms": 9.0}},
    ),
    _measured_set(ONE_NODE, ("hidden size", GPUS), {STEP: {"vTrain": 8.4}}),
    _measured_set(B200, ("model",), {"step_ms": {"SimuMax": 5.6}, "peak_allocated_gib": {"SimuMax": 0.46}}, (MODELS,)),
    _measured_set(TABLE5, ("model",), {name: {"Calculon, tuned": 3.65} for name in TABLES[TABLE5].columns}),
    _measured_set(MEMORY, ("model", "technique")),
    _measured_set(TABLE1, ("params_B",)),
)
