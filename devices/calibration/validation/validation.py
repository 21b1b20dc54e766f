"""Predicts the rows of one folder from those of another, or of one folder from themselves, and counts the errors.

    --fit DIR    gemm_bf16.csv, collectives_nccl.csv, notes.txt          sets: gemm_bf16
    --test DIR   gemm_bf16.csv                                           left out: collectives_nccl (not in the test),
                                                                         maxmin_star (not in the test), notes.txt

A fit sees nothing of the rows it predicts but their keys. A set in which nothing is fitted needs only the test folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from attrs import frozen

from ....errors import InvalidArgumentError
from ....graph.display.progress import ProgressCallback, no_progress
from .measured_set import UNKNOWN, Fold, Job, MeasuredSet, RowPredictions, assembled
from .rows import Indices, MeasuredRows
from .sets import SETS
from .workers import run_jobs


@frozen(eq=False)
class ValidatedPart:
    """Predicted rows of one part of a set. `shared_rows` of them are also among the `fitted_on_rows`."""

    of: MeasuredSet
    name: str | None
    rows: MeasuredRows
    answer: RowPredictions
    fitted_on_rows: int
    shared_rows: int


@frozen(eq=False)
class SetPredictions:
    """The rows of a set in the order of its file, and what is predicted of them."""

    of: MeasuredSet
    rows: MeasuredRows
    answer: RowPredictions


@frozen(eq=False)
class Validation:
    """Parts for a report, predictions for files, and by name why something was left out."""

    parts: tuple[ValidatedPart, ...]
    predictions: tuple[SetPredictions, ...]
    left_out: dict[str, str]


def validate(
    fit: Path, test: Path, on_progress: ProgressCallback = no_progress, sets: Sequence[MeasuredSet] = SETS
) -> Validation:
    """Fits to the folder `fit`, predicts the folder `test`; InvalidArgumentError for bad input, by file and line.

    `on_progress` is told of each job that is done.
    """
    chosen, left_out = _chosen({"fit": _folder(fit), "test": _folder(test)}, sets)
    work = []
    for each in chosen:
        rows = each.read(each.paths(test), True)
        fitted_on = each.read(each.paths(fit), False) if each.is_fitted else None
        work.append(_Work(each, rows, each.jobs(fitted_on, rows.unmeasured()), fitted_on))
    parts: list[ValidatedPart] = []
    predictions = []
    for (each, rows, _, fitted_on, _), answer in zip(work, _answers(work, on_progress), strict=True):
        _check_known(answer, rows, each)
        predictions.append(SetPredictions(each, rows, answer))
        parts += _parts(each, fitted_on, rows, answer)
    return Validation(tuple(parts), tuple(predictions), left_out)


def cross_validate(
    folder: Path, count: int, on_progress: ProgressCallback = no_progress, sets: Sequence[MeasuredSet] = SETS
) -> Validation:
    """Predicts every row of a folder from the other folds of the same file; InvalidArgumentError as `validate`."""
    if count < 2:
        raise InvalidArgumentError(f"{count} folds leave nothing to fit to; give at least 2")
    chosen, left_out = _chosen({"fit": _folder(folder)}, sets)
    work = []
    for each in chosen:
        rows = each.read(each.paths(folder), False)
        bare = rows.unmeasured()
        folds = each.folds(rows, count)
        for name in dict.fromkeys(fold.part for fold in folds):
            of_part = [fold for fold in folds if fold.part == name]
            jobs = [job for fold in of_part for job in _fold_jobs(each, rows, bare, fold)]
            work.append(_Work(each, rows, jobs, folds=of_part))
    parts = []
    predictions: dict[str, SetPredictions] = {}
    for (each, rows, _, _, tested_folds), answer in zip(work, _answers(work, on_progress), strict=True):
        tested = np.sort(np.concatenate([fold.test for fold in tested_folds]))
        least = min(len(fold.fit) for fold in tested_folds)
        parts.append(ValidatedPart(each, tested_folds[0].part, rows.take(tested), answer.take(tested), least, 0))
        if len(tested) == len(rows):  # the folds of all rows; another part holds out some of them in another way
            predictions.setdefault(each.name, SetPredictions(each, rows, answer))
    return Validation(tuple(parts), tuple(predictions.values()), left_out)


def _fold_jobs(each: MeasuredSet, rows: MeasuredRows, bare: MeasuredRows, fold: Fold) -> list[Job]:
    """The jobs of a fold, whose rows are numbered as in the whole file."""
    if not each.is_fitted:
        return list(each.jobs(None, bare))
    jobs = each.jobs(rows.take(fold.fit), bare.take(fold.test))
    return [job._replace(rows=fold.test[job.rows]) for job in jobs]


class _Work(NamedTuple):
    """The rows of a set, and the jobs that predict them from rows that they are fitted to, or fold by fold."""

    of: MeasuredSet
    rows: MeasuredRows
    jobs: Sequence[Job]
    fitted_on: MeasuredRows | None = None
    folds: Sequence[Fold] = ()


def _answers(work: Sequence[_Work], on_progress: ProgressCallback) -> list[RowPredictions]:
    """What the jobs of each piece of work say of its rows; all jobs are run together."""
    answers = iter(run_jobs([job for each in work for job in each.jobs], on_progress))
    return [assembled(each.rows, each.jobs, [next(answers) for _ in each.jobs]) for each in work]


def _parts(
    each: MeasuredSet, fit: MeasuredRows | None, rows: MeasuredRows, answer: RowPredictions
) -> list[ValidatedPart]:
    names = np.array([name or "" for name in each.parts(fit, rows)])
    parts = []
    for name in dict.fromkeys(names.tolist()):
        indices = np.flatnonzero(names == name)
        part = rows.take(indices)
        shared = _shared(fit, part) if fit is not None else 0
        parts.append(
            ValidatedPart(each, name or None, part, answer.take(indices), len(fit) if fit is not None else 0, shared)
        )
    return parts


def _shared(fit: MeasuredRows, test: MeasuredRows) -> int:
    """How many rows of the test are in the fit too: the same keys, and the same times where they are known."""

    def identities(rows: MeasuredRows, names: Sequence[str], chosen: Indices) -> list[tuple[object, ...]]:
        return [(*rows.key(i), *(rows.measured[name][i] for name in names)) for i in chosen]

    every = list(test.measured)
    is_measured = np.all([np.isfinite(test.measured[name]) for name in every], axis=0)
    known = set(identities(fit, every, np.arange(len(fit))))
    known_keys = set(identities(fit, [], np.arange(len(fit))))
    shared = sum(row in known for row in identities(test, every, np.flatnonzero(is_measured)))
    return shared + sum(row in known_keys for row in identities(test, [], np.flatnonzero(~is_measured)))


def _folder(folder: Path) -> Path:
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "does not exist"
        raise InvalidArgumentError(f"folder {str(folder)!r} {what}; give a folder with files of measurements")
    return folder


def _chosen(folders: dict[str, Path], sets: Sequence[MeasuredSet]) -> tuple[list[MeasuredSet], dict[str, str]]:
    """The sets whose files are there, and by name why other sets, then other entries of the folders, are left out.

    InvalidArgumentError where no set is there.
    """
    chosen, left_out = [], {}
    for each in sets:
        needed = {role: path for role, path in folders.items() if each.is_fitted or role == list(folders)[-1]}
        absent = [role for role, path in needed.items() if not each.paths(path)]
        if absent:
            left_out[each.name] = f"no {each.files} in the folder to {' nor in that to '.join(absent)}"
        else:
            chosen.append(each)
    for path in sorted({entry.name for folder in folders.values() for entry in folder.iterdir()}):
        if not any(Path(path).match(files) for each in sets for files in (each.files, *each.beside)):
            left_out[path] = "no set has files of this name"
    if not chosen:
        names = " and ".join(repr(str(path)) for path in folders.values())
        raise InvalidArgumentError(
            f"no set of measurements in {names}; the files of sets are {', '.join(each.files for each in sets)}"
        )
    return chosen, left_out


def _check_known(answer: RowPredictions, rows: MeasuredRows, each: MeasuredSet) -> None:
    if all(text == UNKNOWN for text in answer.provenance):
        raise InvalidArgumentError(
            f"{rows.places[0]}: nothing is known of any device of {each.name}, such as {rows.texts[each.by[0]][0]!r}; "
            "use names of the catalog (partita devices) or add its measurements to the fit"
        )
