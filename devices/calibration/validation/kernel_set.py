"""The set of a file of measured kernels: every system from its own rows, and each from the others.

    gemm_lowbit ("shapes")          rows of a system from its other shapes; a shape is left out of all systems at once
    gemm_lowbit ("unseen system")   rows of a system from all other systems, as `transferred` says

Null models: "roofline", the datasheet's time; "roofline, least row", the same but at least the shortest time of the
system in the fit (of all systems for one that is not in it).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ....graph.arrays import Floats
from ...timing.fits.kernels.kernel_model import KernelModel
from ...timing.fits.kernels.kernel_rows import KernelRows
from ...timing.fits.kernels.transferred import transferred
from ...timing.fits.prediction import Prediction
from ..kernel_file import KernelFile, spec_of
from .cross_validation import dealt_folds
from .measured_set import UNKNOWN, Fold, Job, MeasuredSet, PredictedBounds, RowPredictions, unknown
from .rows import Indices, MeasuredRows

SHAPES, UNSEEN = "shapes", "unseen system"
LONG_NS = 200_000
NULLS = ("roofline", "roofline, least row")


def kernel_set(of: KernelFile) -> MeasuredSet:
    """The set of a file."""
    return MeasuredSet(
        of.name,
        of.file,
        (of.latency,),
        of.read,
        partial(_jobs, of),
        partial(_parts, of),
        partial(_folds, of),
        by=(of.system, *of.by),
        by_measured=partial(_by_duration, of),
    )


def _by_duration(of: KernelFile, rows: MeasuredRows) -> Mapping[str, Mapping[str, Indices]]:
    """Rows that take long apart from the others, in which floors and launches count as much as the kernel."""
    is_long = rows.measured[of.latency] * of.ns_per_unit > LONG_NS
    splits = {"duration": {"over 200 us": np.flatnonzero(is_long), "up to 200 us": np.flatnonzero(~is_long)}}
    for key in (of.system, *of.by):
        long = {name: np.flatnonzero(is_long & (rows.keys[key] == name)) for name in rows.distinct(key)}
        splits[f"{key} over 200 us"] = {name: found for name, found in long.items() if len(found)}
    return splits


def _jobs(of: KernelFile, fit: MeasuredRows | None, test: MeasuredRows) -> Sequence[Job]:
    assert fit is not None
    return [Job(np.arange(len(test)), partial(_answer, of, fit, test), is_long=True)]


def _answer(of: KernelFile, fit: MeasuredRows, test: MeasuredRows) -> RowPredictions:
    """One fit to all rows, asked about each system of the test.

    Where nothing of the test is of a system that was measured, systems are fitted one by one: which of them is left out
    does not change the fits of the others, and a process fits the same rows once.
    """
    is_unseen = not set(fit.distinct(of.system)) & set(test.distinct(of.system))
    models = of.models(fit, pooled=of.pooled and not is_unseen)
    least = {name: float(some.measured[of.latency].min()) for name, some in of.by_system(fit).items()}
    floor = min(least.values())
    whole = unknown(test, NULLS)
    columns = [column.copy() for column in whole.columns[of.latency]]
    nulls = {name: by[of.latency].copy() for name, by in whole.nulls.items()}
    provenance, labels = list(whole.provenance), [""] * len(test)
    for system, lines in of.by_system(test).items():
        at, spec = test.where(of.system, system), spec_of(system)
        if spec is None:
            continue
        rows = of.rows_of(lines)
        said, named = _said(models, system, rows)
        if of.labels_of is not None:
            own = [models[system]] if system in models else list(models.values())
            for row, label in zip(at, of.labels_of(own, rows, spec), strict=True):
                labels[row] = label
        sheet = rows.datasheet_ns(spec) / of.ns_per_unit
        nulls[NULLS[0]][at] = sheet
        nulls[NULLS[1]][at] = np.maximum(sheet, least.get(system, floor))
        for column, times in zip(columns, said[:3], strict=True):
            column[at] = times / of.ns_per_unit
        for row, text in zip(at, named, strict=True):
            provenance[row] = text
    bounds = PredictedBounds(*columns)
    said_labels = {} if of.labels_of is None else {of.labels[0]: tuple(labels)}
    columns_of_nulls = {name: {of.latency: column} for name, column in nulls.items()}
    return RowPredictions({of.latency: bounds}, tuple(provenance), columns_of_nulls, labels=said_labels)


def _said(
    models: Mapping[str, KernelModel[Any]], system: str, rows: KernelRows
) -> tuple[tuple[Floats, Floats, Floats], list[str]]:
    """Times of one system by row, group by group, and their provenance."""
    times = tuple(np.full(len(rows), np.nan) for _ in range(3))
    named = [UNKNOWN] * len(rows)
    groups = np.array(rows.groups, dtype=object)
    for group in dict.fromkeys(rows.groups):
        at = np.flatnonzero(groups == group)
        some = rows.take(at)
        own = models.get(system)
        said: Prediction
        if own is not None and own.has(some):
            said, text = own.predict(some), "fitted"
        else:
            donors = {name: model for name, model in models.items() if name != system and model.has(some)}
            if not donors:
                continue
            spec = spec_of(system)
            assert spec is not None
            said, text = transferred(list(donors.values()), some, spec), f"transferred from {', '.join(donors)}"
        for column, values in zip(times, said[:3], strict=True):
            column[at] = values
        for row in at:
            named[row] = text
    return (times[0], times[1], times[2]), named


def _parts(of: KernelFile, fit: MeasuredRows | None, test: MeasuredRows) -> Sequence[str | None]:
    seen = set() if fit is None else set(fit.distinct(of.system))
    return [SHAPES if system in seen else UNSEEN for system in test.keys[of.system].tolist()]


def _folds(of: KernelFile, rows: MeasuredRows, count: int) -> Sequence[Fold]:
    folds = dealt_folds(rows, count, [], SHAPES, apart_from=[of.system])
    systems = rows.distinct(of.system)
    if len(systems) > 1:
        for system in systems:
            is_held_out = rows.keys[of.system] == system
            folds.append(Fold(UNSEEN, np.flatnonzero(~is_held_out), np.flatnonzero(is_held_out)))
    return folds
