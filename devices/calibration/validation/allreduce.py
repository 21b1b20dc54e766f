"""The set `allreduce_vtrain`: all-reduces among GPUs of one node, which a switch joins, or links in pairs.

    v100,4,268435456,4714.0      the first 4 GPUs of a DGX-1: 4 rings of NVLinks
    v100,5,268435456,            no ring visits the first 5

Which node and which GPUs were used is not stated: of a V100 the first GPUs of a DGX-1 are assumed (`meshes.HOST_OF`).
Rows of a curve that the fit has are the part "sizes"; those of another number of GPUs "unseen GPU count".
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ....errors import InvalidArgumentError
from ..fitting.collectives import CollectiveRows
from .collective_answers import SIZES, UNSEEN_COUNT, CurveFile
from .cross_validation import dealt_folds
from .measured_set import Fold, MeasuredSet
from .rows import COUNT, TEXT, MeasuredRows, read_csv

MEASURED, NS_PER_US = "out_of_place_us", 1e3
CURVE = ("gpu", "gpus")


def read_allreduce(paths: Sequence[Path], may_be_empty: bool) -> MeasuredRows:
    """The rows of the file; the column of reductions in place is not read."""
    rows = read_csv(paths[0], {"gpu": TEXT, "gpus": COUNT, "bytes": COUNT}, [MEASURED], may_be_empty=may_be_empty)
    for place, gpus in zip(rows.places, rows.keys["gpus"], strict=True):
        if gpus < 2:
            raise InvalidArgumentError(f"{place}: gpus = {gpus} is no collective; leave out the row")
    return rows


def allreduce_columns(rows: MeasuredRows) -> CollectiveRows:
    """The rows as collectives."""
    times = rows.measured[MEASURED] * NS_PER_US
    kinds = ["all_reduce"] * len(rows)
    return CollectiveRows(rows.keys["gpu"].tolist(), kinds, rows.keys["gpus"], rows.keys["bytes"], times)


def _folds(rows: MeasuredRows, count: int) -> Sequence[Fold]:
    """Sizes dealt within each curve; and each number of GPUs of a model that has two others."""
    folds = dealt_folds(rows, count, CURVE, SIZES)
    for gpu in rows.distinct("gpu"):
        known = sorted(set(rows.keys["gpus"][rows.where("gpu", gpu)].tolist()))
        for gpus in known if len(known) > 2 else ():
            is_held_out = (rows.keys["gpu"] == gpu) & (rows.keys["gpus"] == gpus)
            folds.append(Fold(UNSEEN_COUNT, np.flatnonzero(~is_held_out), np.flatnonzero(is_held_out)))
    return folds


_FILE = CurveFile(MEASURED, NS_PER_US, allreduce_columns)
ALLREDUCE_VTRAIN = MeasuredSet(
    "allreduce_vtrain",
    "allreduce_vtrain.csv",
    (MEASURED,),
    read_allreduce,
    _FILE.jobs,
    _FILE.parts,
    _folds,
    by=("gpu", "gpus"),
)
