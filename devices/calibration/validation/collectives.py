"""The set `collectives_nccl`: times of NCCL's collectives on several systems, one fit that shares between them.

Rows of a curve that the fit has are the part "sizes"; those of a curve that it lacks are the part "unseen GPU count".
A file `collectives_nccl_versions.csv` beside says with which version of the library each row was measured; a row that
it lacks takes the commonest version of its curve.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from attrs import evolve

from ....errors import InvalidArgumentError
from ...timing.collectives.kinds import kind_named
from ..fitting.collectives import CollectiveRows
from .collective_answers import SIZES, UNSEEN_COUNT, CurveFile
from .cross_validation import dealt_folds
from .gemm import LATENCY, NS_PER_MS
from .measured_set import Fold, MeasuredSet
from .rows import COUNT, TEXT, MeasuredRows, read_csv

BYTES = 2  # of an element
CURVE = ("system", "op_name", "num_gpus")
VERSIONS = "collectives_nccl_versions.csv"
_KEYS = {"system": TEXT, "op_name": TEXT, "num_gpus": COUNT, "elements_fp16": COUNT}
_VERSION = "collected_in"


def read_nccl(paths: Sequence[Path], may_be_empty: bool) -> MeasuredRows:
    """The rows, with the key `version`: library and version, "" where no file says."""
    rows = read_csv(paths[0], _KEYS, [LATENCY], may_be_empty=may_be_empty)
    for place, op, ranks in zip(rows.places, rows.keys["op_name"], rows.keys["num_gpus"], strict=True):
        try:
            kind_named(str(op))
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"{place}: {error.message}; correct it or leave out the row") from None
        if ranks < 2:
            raise InvalidArgumentError(f"{place}: num_gpus = {ranks} is no collective; leave out the row")
    beside = paths[0].with_name(VERSIONS)
    known: dict[tuple[object, ...], str] = {}
    if beside.is_file():
        versions = read_csv(beside, {**_KEYS, _VERSION: TEXT}, [], may_be_empty=True)
        known = {_key(versions, i): str(versions.keys[_VERSION][i]) for i in range(len(versions))}
    of_rows = np.array([known.get(_key(rows, i), "") for i in range(len(rows))], dtype=np.str_)
    return evolve(rows, keys={**rows.keys, "version": of_rows})


def _key(rows: MeasuredRows, row: int) -> tuple[object, ...]:
    return tuple(rows.keys[name][row] for name in _KEYS)


def nccl_columns(rows: MeasuredRows) -> CollectiveRows:
    """The rows as collectives."""
    return CollectiveRows(
        rows.keys["system"].tolist(),
        [kind_named(op) for op in rows.keys["op_name"].tolist()],
        rows.keys["num_gpus"],
        BYTES * rows.keys["elements_fp16"],
        rows.measured[LATENCY] * NS_PER_MS,
        rows.keys["version"].tolist(),
    )


def _folds(rows: MeasuredRows, count: int) -> Sequence[Fold]:
    """Sizes dealt within each curve; and the largest number of GPUs of every system that has two smaller ones."""
    counts: dict[str, list[int]] = {
        system: sorted(set(rows.keys["num_gpus"][rows.where("system", system)].tolist()))
        for system in rows.distinct("system")
    }
    folds = dealt_folds(rows, count, CURVE, SIZES)
    for system, known in counts.items():
        if len(known) > 2:
            is_held_out = (rows.keys["system"] == system) & (rows.keys["num_gpus"] == known[-1])
            folds.append(Fold(UNSEEN_COUNT, np.flatnonzero(~is_held_out), np.flatnonzero(is_held_out)))
    return folds


_FILE = CurveFile(LATENCY, NS_PER_MS, nccl_columns)
COLLECTIVES_NCCL = MeasuredSet(
    "collectives_nccl",
    "collectives_nccl.csv",
    (LATENCY,),
    read_nccl,
    _FILE.jobs,
    _FILE.parts,
    _folds,
    beside=(VERSIONS,),
)
