"""The set `collectives_nccl`: times of NCCL's collectives on several systems, one fit that shares between them.

Curves are time over size, one for each system, op and number of GPUs. Rows of a curve that the fit has are the part
"sizes"; those of a curve that it lacks are the part "unseen GPU count". A system without any rows is predicted from the
one whose link is nearest, scaled by the ratio of the datasheets' times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.arrays import Floats
from ...spec import DeviceSpec
from ...timing.collectives.kinds import bus_share, kind_named
from ...timing.collectives.measured import CollectiveModel
from ..fitting.collectives import CollectiveRows, fit_collectives
from ..fitting.null_models import datasheet_collective_ns, link_between, log_log, nearest_ranks
from ..kernel_file import spec_of
from .cross_validation import dealt_folds
from .gemm import LATENCY, NS_PER_MS, TRANSFER_SPREAD
from .measured_set import UNKNOWN, Fold, Job, MeasuredSet, PredictedBounds, RowPredictions
from .rows import COUNT, TEXT, Indices, MeasuredRows, read_csv

SIZES, UNSEEN_COUNT = "sizes", "unseen GPU count"
BYTES = 2  # of an element
LONG_ROWS = 100
CURVE = ("system", "op_name", "num_gpus")

_CurveKey = tuple[str, str, int]


class _Said(NamedTuple):
    """Times of a curve in ns with their bounds, as `Prediction`, with a provenance that may name a system."""

    time_ns: Floats
    low_ns: Floats
    high_ns: Floats
    provenance: str


def _read(paths: Sequence[Path], may_be_empty: bool) -> MeasuredRows:
    keys = {"system": TEXT, "op_name": TEXT, "num_gpus": COUNT, "elements_fp16": COUNT}
    rows = read_csv(paths[0], keys, [LATENCY], may_be_empty=may_be_empty)
    for place, op, ranks in zip(rows.places, rows.keys["op_name"], rows.keys["num_gpus"], strict=True):
        try:
            kind_named(str(op))
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"{place}: {error.message}; correct it or leave out the row") from None
        if ranks < 2:
            raise InvalidArgumentError(f"{place}: num_gpus = {ranks} is no collective; leave out the row")
    return rows


def _jobs(fit: MeasuredRows | None, test: MeasuredRows) -> Sequence[Job]:
    assert fit is not None
    return [Job(np.arange(len(test)), partial(_answer, fit, test), len(fit) >= LONG_ROWS)]


def _curves(rows: MeasuredRows) -> dict[_CurveKey, Indices]:
    """The rows of each curve, op names made kinds."""
    indices: dict[_CurveKey, list[int]] = {}
    columns = (rows.keys[name].tolist() for name in CURVE)
    for row, (system, op, ranks) in enumerate(zip(*columns, strict=True)):
        indices.setdefault((system, kind_named(op), ranks), []).append(row)
    return {curve: np.array(of_curve) for curve, of_curve in indices.items()}


def _size_bytes(rows: MeasuredRows, which: Indices | slice = slice(None)) -> Floats:
    return BYTES * rows.keys["elements_fp16"][which].astype(np.float64)


def _answer(fit: MeasuredRows, test: MeasuredRows) -> RowPredictions:
    """One fit to all rows, asked for each curve of the test."""
    given = CollectiveRows(
        fit.keys["system"].tolist(),
        [kind_named(op) for op in fit.keys["op_name"].tolist()],
        fit.keys["num_gpus"],
        BYTES * fit.keys["elements_fp16"],
        fit.measured[LATENCY] * NS_PER_MS,
    )
    try:
        models = fit_collectives(given, source="measured", date="")
    except InvalidArgumentError as error:
        raise InvalidArgumentError(
            f"{fit.places[-1]}: {error.message}; add measurements or leave out its rows"
        ) from None
    times = {name: np.full(len(test), np.nan) for name in ("value", "low", "high", "log_log", "datasheet")}
    provenance = [UNKNOWN] * len(test)
    known = _curves(fit)
    for (system, kind, ranks), rows in _curves(test).items():
        sizes = _size_bytes(test, rows)
        own = models.get(system)
        if own is not None:
            said = _Said(*own.predict(kind, ranks, sizes))
        else:
            said = _transferred(system, models, kind, ranks, sizes)
        spec = spec_of(system)
        datasheet = datasheet_collective_ns(kind, ranks, sizes, spec) if spec else np.full(len(rows), np.nan)
        times["datasheet"][rows] = datasheet
        times["log_log"][rows] = _log_log(known, fit, (system, kind, ranks), sizes, datasheet)
        for name, column in zip(("value", "low", "high"), said[:3], strict=True):
            times[name][rows] = column
        for row in rows:
            provenance[row] = said.provenance
    milliseconds = {name: column / NS_PER_MS for name, column in times.items()}
    bounds = PredictedBounds(*(milliseconds[name] for name in ("value", "low", "high")))
    nulls = {name: {LATENCY: milliseconds[name]} for name in ("log_log", "datasheet")}
    return RowPredictions({LATENCY: bounds}, tuple(provenance), nulls)


def _transferred(system: str, models: Mapping[str, CollectiveModel], kind: str, ranks: int, sizes: Floats) -> _Said:
    """Times of a system without rows: of the fitted one with the nearest link, by the ratio of the datasheets."""
    spec = spec_of(system)
    donors = {
        name: other for name in models if (other := spec_of(name)) is not None and link_between(other) is not None
    }
    nothing = np.full(len(sizes), np.nan)
    if spec is None or link_between(spec) is None:
        return _Said(nothing, nothing, nothing, UNKNOWN)
    alone = datasheet_collective_ns(kind, ranks, sizes, spec)
    if not donors:
        return _Said(alone, alone, alone * np.exp(4 * TRANSFER_SPREAD), "datasheet")
    donor = min(sorted(donors), key=lambda name: _distance(spec, donors[name]))
    said = models[donor].predict(kind, ranks, sizes)
    scale = alone / datasheet_collective_ns(kind, ranks, sizes, donors[donor])
    wider = np.exp(TRANSFER_SPREAD)
    return _Said(
        said.time_ns * scale, said.low_ns * scale / wider, said.high_ns * scale * wider, f"transferred from {donor}"
    )


def _distance(spec: DeviceSpec, other: DeviceSpec) -> float:
    """How far the bandwidths of two devices' links are apart, in logarithms."""
    mine, theirs = link_between(spec), link_between(other)
    if mine is None or theirs is None:
        return float("inf")
    return abs(float(np.log(mine.bandwidth_bytes_per_s / theirs.bandwidth_bytes_per_s)))


def _log_log(
    known: Mapping[_CurveKey, Indices], fit: MeasuredRows, curve: _CurveKey, sizes: Floats, datasheet: Floats
) -> Floats:
    """The null model: the curve interpolated, or that of the nearest number of GPUs by the share of bytes that move.

    A system or kind without any curve has the time of the datasheet.
    """
    system, kind, ranks = curve
    counts = [n for s, k, n in known if (s, k) == (system, kind)]
    if not counts:
        return datasheet
    nearest = nearest_ranks(ranks, counts)
    rows = known[system, kind, nearest]
    times = log_log(_size_bytes(fit, rows), fit.measured[LATENCY][rows] * NS_PER_MS, sizes)
    return np.asarray(times * bus_share(kind, ranks) / bus_share(kind, nearest), dtype=np.float64)


def _parts(fit: MeasuredRows | None, test: MeasuredRows) -> Sequence[str | None]:
    seen = set() if fit is None else set(_curves(fit))
    columns = (test.keys[name].tolist() for name in CURVE)
    return [SIZES if (s, kind_named(op), n) in seen else UNSEEN_COUNT for s, op, n in zip(*columns, strict=True)]


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


COLLECTIVES_NCCL = MeasuredSet("collectives_nccl", "collectives_nccl.csv", (LATENCY,), _read, _jobs, _parts, _folds)
