"""The set `llm_serving`: times to the first and per further token of deployments, from others.

    rows to fit to     Llama-3.1-70B, H200, trtllm, tp 4, 16 requests at a time: 98 ms, 9.4 ms   overlap, prefill, burst
    rows to predict    Llama-3.1-70B, B200, trtllm, tp 2, 64 requests at a time                  closed form, surface

What is said is the closed form of `rates` with numbers of the framework, times a surface over what it misses on the
rows to fit to. Null models: "closed form", without the surface; "roofline", weights and cache over the bandwidth of
memory (first token: operations over the peak rate). All concurrencies of one configuration are in one fold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...devices.calibration.validation.cross_validation import dealt_folds
from ...devices.calibration.validation.measured_set import (
    UNKNOWN,
    Fold,
    Job,
    MeasuredSet,
    PredictedBounds,
    RowPredictions,
    no_parts,
)
from ...devices.calibration.validation.rows import COUNT, OPTIONAL, TEXT, MeasuredRows, read_csv
from ...devices.timing.fits.products import bf16_peak
from ...errors import PartitaError
from ...graph.arrays import Floats, Numbers
from .deployment import BITS
from .fitting import LEAST_ROWS, fit_framework, fit_residual, said
from .frameworks import FrameworkNumbers
from .measured import MeasuredDeployment, measured_deployment
from .rates import PassSums, pass_sums

FIRST, TOKEN = "ttft_ms", "tpot_ms"
MODELS = "llm_serving_models.csv"
CLOSED, ROOFLINE = "closed form", "roofline"
NS_PER_MS = 1e6
FRAMEWORKS = ("trtllm", "vllm", "sglang")
TEXTS = ("model", "system", "backend")
MAY_BE_EMPTY = (
    *("backend_version", "precision", "gemm_quant", "moe_quant"),
    *("attention_dp_size", "moe_tp_size", "moe_ep_size", "concurrency"),
)
"""unknown; of the last four a number, which may also be 0"""
COUNTS = ("isl", "osl", "tp_size", "pp_size", "batch_size")
LOAD = ("batch_size", "concurrency")
"""columns that differ within a configuration"""


class _Row(NamedTuple):
    """A row as the closed form sees it, and what the surface may tell from it."""

    of: MeasuredDeployment
    sums: PassSums


@cache
def _row(cells: tuple[tuple[str, str], ...], models: Path) -> _Row | None:
    """The row of these cells; None for a deployment that cannot be, or of which nothing is known."""
    row = dict(cells)
    if row["pp_size"] != "1":
        return None
    try:
        of = measured_deployment(row, models)
        return _Row(of, pass_sums(of.deployment, of.load)[0])
    except PartitaError:
        return None


def _read(paths: Sequence[Path], may_be_empty: bool) -> MeasuredRows:
    keys = {**dict.fromkeys(TEXTS, TEXT), **dict.fromkeys(MAY_BE_EMPTY, OPTIONAL), **dict.fromkeys(COUNTS, COUNT)}
    return read_csv(paths[0], keys, [FIRST, TOKEN], may_be_empty=may_be_empty)


def _rows(of: MeasuredRows) -> list[_Row | None]:
    models = Path(of.places[0].rpartition(":")[0]).with_name(MODELS)
    names = list(of.texts)
    return [_row(tuple(zip(names, cells, strict=True)), models) for cells in zip(*of.texts.values(), strict=True)]


def _jobs(fit: MeasuredRows | None, test: MeasuredRows) -> Sequence[Job]:
    assert fit is not None
    return [Job(np.arange(len(test)), partial(_answer, fit, test), is_long=True)]


def _answer(fit: MeasuredRows, test: MeasuredRows) -> RowPredictions:
    known, asked = _known(fit), _known(test)
    measured, numbers = _measured_ns(fit, known), numbers_of_frameworks(fit)
    everywhere = fit_framework([row.sums for row in known.rows], measured)
    closed, off = _closed(asked, numbers, everywhere), np.log(measured / _closed(known, numbers, everywhere))
    features, of_asked = _features(known.rows), _features(asked.rows)
    columns: dict[str, PredictedBounds] = {}
    nulls: dict[str, dict[str, Floats]] = {name: {} for name in (CLOSED, ROOFLINE)}
    for i, column in enumerate((FIRST, TOKEN)):
        surface = fit_residual(features, off[:, i], _configurations(known))
        mean, deviation = surface.at(of_asked)
        time, half = closed[:, i] * np.exp(mean), surface.numbers.quantile * deviation
        bounds = (time, time * np.exp(-half), time * np.exp(half))
        columns[column] = PredictedBounds(*(_spread(asked, values, len(test)) for values in bounds))
        nulls[CLOSED][column] = _spread(asked, closed[:, i], len(test))
        nulls[ROOFLINE][column] = _spread(asked, _roofline(asked.rows)[:, i], len(test))
    provenance = [UNKNOWN] * len(test)
    for at, row in zip(asked.at, asked.rows, strict=True):
        own = row.of.framework in numbers
        provenance[at] = "closed form and surface" if own else "closed form and surface, numbers of all frameworks"
    return RowPredictions(columns, tuple(provenance), nulls)


def numbers_of_frameworks(fit: MeasuredRows) -> dict[str, FrameworkNumbers]:
    """The numbers of each framework of which there are rows enough."""
    known = _known(fit)
    measured = _measured_ns(fit, known)
    return {
        name: fit_framework([known.rows[i].sums for i in of], measured[of])
        for name, of in known.of_framework().items()
        if len(of) >= LEAST_ROWS
    }


class _Known(NamedTuple):
    """The rows that can be, and their numbers in the file."""

    rows: list[_Row]
    at: Numbers

    def of_framework(self) -> dict[str, Numbers]:
        """The rows of each framework."""
        names = np.array([row.of.framework for row in self.rows])
        return {name: np.flatnonzero(names == name) for name in dict.fromkeys(names.tolist())}


def _known(of: MeasuredRows) -> _Known:
    every = _rows(of)
    at = np.array([i for i, row in enumerate(every) if row is not None], dtype=np.int64)
    return _Known([row for row in every if row is not None], at)


def _measured_ns(of: MeasuredRows, known: _Known) -> Floats:
    """Times to the first and per further token, a row a known row."""
    return np.stack([of.measured[FIRST], of.measured[TOKEN]], axis=1)[known.at] * NS_PER_MS


def _closed(of: _Known, numbers: Mapping[str, FrameworkNumbers], everywhere: FrameworkNumbers) -> Floats:
    """Times in ns by row: to the first and per further token."""
    times = np.empty((len(of.rows), 2))
    for name, rows in of.of_framework().items():
        times[rows] = said([of.rows[i].sums for i in rows], numbers.get(name, everywhere))
    return times


def _configurations(of: _Known) -> Numbers:
    """By row a number of its configuration: rows of one differ in their load alone."""
    numbers: dict[object, int] = {}
    names = [(row.of.deployment, row.of.load._replace(concurrency=0), row.of.framework) for row in of.rows]
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64)


def _features(rows: Sequence[_Row]) -> dict[str, Floats]:
    """What the closed form's error may depend on: the load, how the model is spread, the system, the framework."""
    sizes = {
        "concurrency": [row.of.load.concurrency for row in rows],
        "prompt": [row.of.load.prompt for row in rows],
        "answer": [row.of.load.answer for row in rows],
        "alive": [row.sums.alive for row in rows],
        "asked": [row.sums.asked / row.sums.alive for row in rows],
        "tp": [row.of.deployment.tp for row in rows],
        "replicas": [row.of.deployment.attention_dp for row in rows],
        "ep": [row.of.deployment.expert_ep for row in rows],
        "bandwidth": [row.of.deployment.spec.memory_bandwidth_bytes_per_s for row in rows],
        "rate": [bf16_peak(row.of.deployment.spec) for row in rows],
        "width": [BITS[row.of.deployment.weights] for row in rows],
        "parameters": [row.of.deployment.model.active_parameters for row in rows],
        "share": [row.of.deployment.model.parameters / row.of.deployment.model.active_parameters for row in rows],
    }
    columns = {f"log2 {name}": np.log2(np.array(values, dtype=np.float64)) for name, values in sizes.items()}
    for framework in FRAMEWORKS:
        columns[framework] = np.array([float(row.of.framework == framework) for row in rows])
    return columns


def _roofline(rows: Sequence[_Row]) -> Floats:
    """Bytes of weights and cache over the bandwidth; operations of the prompt over the peak rate."""
    times = []
    for row in rows:
        of, load = row.of.deployment, row.of.load
        flops = 2 * of.model.active_parameters * load.prompt / (of.gpus * bf16_peak(of.spec) * 16 / BITS[of.weights])
        moved = of.weight_bytes + row.sums.alive * of.cache_bytes(load.prompt + load.answer // 2)
        times.append((flops * 1e9, moved * 1e9 / of.spec.memory_bandwidth_bytes_per_s))
    return np.array(times, dtype=np.float64).reshape(-1, 2)


def _spread(of: _Known, values: Floats, rows: int) -> Floats:
    """Values of known rows in ms, NaN for the others."""
    column = np.full(rows, np.nan)
    column[of.at] = values / NS_PER_MS
    return column


def _folds(rows: MeasuredRows, count: int) -> Sequence[Fold]:
    return dealt_folds(rows, count, [], apart_from=LOAD)


LLM_SERVING = MeasuredSet(
    "llm_serving",
    "llm_serving*.csv",
    (FIRST, TOKEN),
    _read,
    _jobs,
    no_parts,
    _folds,
    by=("system", "model", "backend"),
)
