"""The set `gemm_bf16`: from times of bf16 products on some systems to times of others, a model fitted for each.

    rows to fit to     h100_sxm,8,3072,64,0.0032, ...
    rows to predict    h100_sxm,64,4096,4096            0.0155 ms, "fitted"
                       h200_sxm,64,4096,4096            a time scaled from it, "transferred from h100_sxm"

A system without rows to fit to is predicted from the model of the system whose datasheet is nearest, scaled by the
ratio of the datasheets' times. A system that the fit has and the catalog lacks is given by three numbers fitted to its
rows. Of a system that both lack nothing is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from ....graph.arrays import Floats
from ...catalog import device_spec
from ...spec import DeviceSpec
from ...tables import naming
from ...timing.fits.products import ProductModel, Products, bf16_peak, datasheet_ns
from ..fitting.null_models import Roofline3, fit_roofline_3
from ..fitting.products import fit_products
from ..kernel_file import spec_of
from .cross_validation import dealt_folds
from .measured_set import Fold, Job, MeasuredSet, PredictedBounds, RowPredictions, no_parts, unknown
from .rows import COUNT, TEXT, MeasuredRows, read_csv

LATENCY = "latency_ms"
NULLS = ("roofline_3", "datasheet")
NS_PER_MS = 1e6
LONG_ROWS = 150
"""a fit of so many rows takes over a second"""
TRANSFER_SPREAD = 0.35
"""what the interval of a time from another system is wider by, in log time, on each side"""


def _read(paths: Sequence[Path], may_be_empty: bool) -> MeasuredRows:
    return read_csv(
        paths[0], {"system": TEXT, "m": COUNT, "n": COUNT, "k": COUNT}, [LATENCY], may_be_empty=may_be_empty
    )


def _jobs(fit: MeasuredRows | None, test: MeasuredRows) -> Sequence[Job]:
    assert fit is not None
    specs = {name: spec for name in fit.distinct("system") if (spec := spec_of(name)) is not None}
    jobs = []
    for system in test.distinct("system"):
        rows = test.where("system", system)
        own, asked = fit.take(fit.where("system", system)), test.take(rows)
        donor = None if len(own) else nearest(spec_of(system), specs)
        if len(own):
            jobs.append(Job(rows, partial(_measured, system, own, asked), len(own) >= LONG_ROWS))
        elif donor is not None:
            given = fit.take(fit.where("system", donor))
            jobs.append(Job(rows, partial(_transferred, system, donor, given, asked), len(given) >= LONG_ROWS))
        else:
            jobs.append(Job(rows, partial(_from_datasheet, system, asked)))
    return jobs


def nearest(spec: DeviceSpec | None, specs: Mapping[str, DeviceSpec]) -> str | None:
    """The system whose peak and bandwidth are nearest in logarithms, the first by name of several; None for none."""
    if spec is None or not specs:
        return None

    def distance(name: str) -> float:
        other = specs[name]
        bandwidths = other.memory_bandwidth_bytes_per_s / spec.memory_bandwidth_bytes_per_s
        return float(np.hypot(np.log(bf16_peak(other) / bf16_peak(spec)), np.log(bandwidths)))

    return min(sorted(specs), key=distance)


def _products(rows: MeasuredRows, is_transferred: bool = False) -> Products:
    keys = rows.keys
    return Products(keys["m"], keys["n"], keys["k"], np.ones(len(rows), dtype=np.int64), is_transferred=is_transferred)


def _roofline_3(system: str, fit: MeasuredRows) -> Roofline3:
    products = _products(fit)
    with naming(f"{fit.places[-1]}: {system}"):
        return fit_roofline_3(products.flops, products.bytes, fit.measured[LATENCY] * NS_PER_MS)


def _measured(system: str, fit: MeasuredRows, test: MeasuredRows) -> RowPredictions:
    """The answer for a system with rows of its own."""
    spec, asked = spec_of(system), _products(test)
    null = _roofline_3(system, fit)
    simple_ns = null.time_ns(asked.flops, asked.bytes)
    nulls = {"roofline_3": simple_ns, "datasheet": _datasheet_ns(asked, spec)}
    if spec is None:
        times = (simple_ns, simple_ns * np.exp(null.low), simple_ns * np.exp(null.high))
        return _answer(*times, f"roofline of three fitted numbers: the catalog has no {system!r}", nulls)
    said = _model(system, fit, spec).predict(asked)
    return _answer(said.time_ns, said.low_ns, said.high_ns, said.provenance, nulls)


def _model(system: str, fit: MeasuredRows, spec: DeviceSpec) -> ProductModel:
    with naming(f"{fit.places[-1]}: {system}"):
        return fit_products(_products(fit), fit.measured[LATENCY] * NS_PER_MS, spec, source="measured", date="")


def _transferred(system: str, donor: str, fit: MeasuredRows, test: MeasuredRows) -> RowPredictions:
    """The answer for a system without rows: another's times by the ratio of the datasheets' times."""
    spec, other, asked = device_spec(system), device_spec(donor), _products(test, is_transferred=True)
    said = _model(donor, fit, other).predict(asked)
    scale = datasheet_ns(asked, spec) / datasheet_ns(asked, other)
    wider = np.exp(TRANSFER_SPREAD)
    times = (said.time_ns * scale, said.low_ns * scale / wider, said.high_ns * scale * wider)
    null = _roofline_3(donor, fit).time_ns(asked.flops, asked.bytes) * scale
    return _answer(*times, f"transferred from {donor}", {"roofline_3": null, "datasheet": datasheet_ns(asked, spec)})


def _from_datasheet(system: str, test: MeasuredRows) -> RowPredictions:
    """The answer for a system when nothing is fitted: unknown, or the datasheet's time, which nothing is below."""
    spec = spec_of(system)
    if spec is None:
        return unknown(test, NULLS)
    times = datasheet_ns(_products(test), spec)
    return _answer(times, times, times * np.exp(4 * TRANSFER_SPREAD), "datasheet", dict.fromkeys(NULLS, times))


def _datasheet_ns(asked: Products, spec: DeviceSpec | None) -> Floats:
    return np.full(len(asked), np.nan) if spec is None else datasheet_ns(asked, spec)


def _answer(
    time_ns: Floats, low_ns: Floats, high_ns: Floats, provenance: str, nulls: Mapping[str, Floats]
) -> RowPredictions:
    bounds = PredictedBounds(time_ns / NS_PER_MS, low_ns / NS_PER_MS, high_ns / NS_PER_MS)
    by_null = {name: {LATENCY: times / NS_PER_MS} for name, times in nulls.items()}
    return RowPredictions({LATENCY: bounds}, (provenance,) * len(time_ns), by_null)


def _folds(rows: MeasuredRows, count: int) -> Sequence[Fold]:
    return dealt_folds(rows, count, ["system"])


GEMM_BF16 = MeasuredSet("gemm_bf16", "gemm_bf16.csv", (LATENCY,), _read, _jobs, no_parts, _folds)
