"""Files of predictions: a CSV per set, its rows in the order of the measurements.

    system,m,n,k,predicted_latency_ms,low_latency_ms,high_latency_ms,provenance
    h100_sxm,8,3072,64,0.00321,0.0030,0.0034,fitted

Keys are printed as in the file of measurements, in the order of its columns. What nobody knows is an empty cell.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from math import isfinite
from pathlib import Path

from ....errors import InvalidArgumentError
from .measured_set import MeasuredSet
from .sets import SETS
from .validation import SetPredictions


def check_folder_of_predictions(folder: Path, inputs: Iterable[Path], sets: Sequence[MeasuredSet] = SETS) -> None:
    """InvalidArgumentError if a file of predictions would be written over an input: one in these folders."""
    ours = {(folder / f"{each.name}.csv").resolve() for each in sets}
    for source in inputs:
        theirs = {path.resolve() for each in sets for path in each.paths(source)}
        if folder.resolve() == source.resolve() or ours & theirs:
            raise InvalidArgumentError(f"{str(folder)!r} holds measurements that are read; give another folder")


def write_predictions(folder: Path, predictions: Sequence[SetPredictions]) -> list[Path]:
    """Writes a file per set, making the folder if it is missing; returns the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for each in predictions:
        paths.append(folder / f"{each.of.name}.csv")
        with paths[-1].open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(_lines(each))
    return paths


def _lines(each: SetPredictions) -> list[list[str]]:
    texts, answer = each.rows.texts, each.answer
    headings = [f"{bound}_{name}" for name in each.of.measured for bound in ("predicted", "low", "high")]
    numbers = [column for name in each.of.measured for column in answer.columns[name]]
    rows = [
        [
            *(column[row] for column in texts.values()),
            *(_number(float(column[row]), each.of.digits) for column in numbers),
            answer.provenance[row],
        ]
        for row in range(len(each.rows))
    ]
    return [[*texts, *headings, "provenance"], *rows]


def _number(value: float, digits: int) -> str:
    return f"{value:.{digits}g}" if isfinite(value) else ""
