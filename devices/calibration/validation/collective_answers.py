"""What one fit to all rows of a set of collectives says of each curve that is asked about, beside null models.

A curve is time over size, one for each system, kind and number of ranks. A system without any rows is predicted from
the one whose link is nearest, scaled by the ratio of the datasheets' times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from attrs import frozen

from ....errors import InvalidArgumentError
from ....graph.arrays import Floats
from ...spec import DeviceSpec
from ...timing.collectives.kinds import bus_share, kind_named
from ...timing.collectives.measured import CollectiveModel, library_name
from ..fitting.collectives import CollectiveRows, fit_collectives
from ..fitting.meshes import HOST_OF, first_rings
from ..fitting.null_models import datasheet_collective_ns, link_between, log_log, nearest_ranks
from ..kernel_file import spec_of
from .gemm import TRANSFER_SPREAD
from .measured_set import UNKNOWN, Job, PredictedBounds, RowPredictions
from .rows import Indices, MeasuredRows

SIZES, UNSEEN_COUNT = "sizes", "unseen GPU count"
LONG_ROWS = 100
NULLS = ("log_log", "datasheet")
CurveKey = tuple[str, str, int]
"""system, kind, ranks"""


class _Said(NamedTuple):
    """Times of a curve in ns with their bounds, as `Prediction`, with a provenance that may name a system."""

    time_ns: Floats
    low_ns: Floats
    high_ns: Floats
    provenance: str


@frozen
class CurveFile:
    """How the lines of a file are collectives: `columns` makes rows of them, their times NaN where none is measured."""

    latency: str
    ns_per_unit: float
    columns: Callable[[MeasuredRows], CollectiveRows]

    def jobs(self, fit: MeasuredRows | None, test: MeasuredRows) -> Sequence[Job]:
        """One job: the fit is of all rows."""
        assert fit is not None
        return [Job(np.arange(len(test)), partial(answer, self, fit, test), len(fit) >= LONG_ROWS)]

    def curves(self, rows: MeasuredRows) -> dict[CurveKey, Indices]:
        """The rows of each curve."""
        columns, indices = self.columns(rows), dict[CurveKey, list[int]]()
        keys = zip(columns.systems, columns.kinds, columns.ranks.tolist(), strict=True)
        for row, (system, kind, ranks) in enumerate(keys):
            indices.setdefault((system, kind_named(kind), ranks), []).append(row)
        return {curve: np.array(of_curve) for curve, of_curve in indices.items()}

    def parts(self, fit: MeasuredRows | None, test: MeasuredRows) -> Sequence[str | None]:
        """Whether the fit has the curve of each row."""
        seen = set() if fit is None else set(self.curves(fit))
        names = np.full(len(test), UNSEEN_COUNT, object)
        for curve, rows in self.curves(test).items():
            if curve in seen:
                names[rows] = SIZES
        return list(names)


def answer(of: CurveFile, fit: MeasuredRows, test: MeasuredRows) -> RowPredictions:
    """What the fit says of the rows of the test."""
    given, asked = of.columns(fit), of.columns(test)
    models = _models(given, fit)
    times = {name: np.full(len(test), np.nan) for name in ("value", "low", "high", *NULLS)}
    provenance = [UNKNOWN] * len(test)
    known = of.curves(fit)
    versions = np.array(asked.versions or [""] * len(test))
    for (system, kind, ranks), of_curve in of.curves(test).items():
        for version in dict.fromkeys(versions[of_curve].tolist()):
            rows = of_curve[versions[of_curve] == version]
            sizes = asked.size_bytes[rows].astype(np.float64)
            said = _said(models, system, kind, ranks, sizes, version)
            spec = spec_of(system)
            datasheet = datasheet_collective_ns(kind, ranks, sizes, spec) if spec else np.full(len(rows), np.nan)
            times["datasheet"][rows] = datasheet
            times["log_log"][rows] = _log_log(known, given, (system, kind, ranks), sizes, datasheet)
            for name, column in zip(("value", "low", "high"), said[:3], strict=True):
                times[name][rows] = column
            for row in rows:
                provenance[row] = said.provenance
    in_unit = {name: column / of.ns_per_unit for name, column in times.items()}
    bounds = PredictedBounds(*(in_unit[name] for name in ("value", "low", "high")))
    return RowPredictions(
        {of.latency: bounds}, tuple(provenance), {name: {of.latency: in_unit[name]} for name in NULLS}
    )


def _models(given: CollectiveRows, fit: MeasuredRows) -> dict[str, CollectiveModel]:
    try:
        return fit_curves(given, "measured", "")
    except InvalidArgumentError as error:
        raise InvalidArgumentError(
            f"{fit.places[-1]}: {error.message}; add measurements or leave out its rows"
        ) from None


def fit_curves(rows: CollectiveRows, source: str, date: str) -> dict[str, CollectiveModel]:
    """The fit to rows of systems by their names in the catalog; raises as `fit_collectives`.

    Systems whose GPUs are joined in pairs are taken to be machines of the catalog, the first GPUs of which were used.
    """
    specs = {name: spec_of(name) for name in set(rows.systems)}
    hosts = {name: HOST_OF[spec.name] for name, spec in specs.items() if spec is not None and spec.name in HOST_OF}
    meshes = {name: first_rings(host) for name, host in hosts.items()}
    return fit_collectives(rows, source=source, date=date, meshes=meshes)


def _said(
    models: Mapping[str, CollectiveModel], system: str, kind: str, ranks: int, sizes: Floats, version: str
) -> _Said:
    own = models.get(system)
    if own is None:
        return _transferred(system, models, kind, ranks, sizes)
    said = own.predict(kind, ranks, sizes, version=version)
    library = library_name(version or own.libraries.of(kind, ranks))
    return _Said(*said[:3], f"{said.provenance} ({library})" if library else said.provenance)


def _transferred(system: str, models: Mapping[str, CollectiveModel], kind: str, ranks: int, sizes: Floats) -> _Said:
    """Times of a system without rows: of the fitted one with the nearest link, by the ratio of datasheets' times."""
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
    known: Mapping[CurveKey, Indices], given: CollectiveRows, curve: CurveKey, sizes: Floats, datasheet: Floats
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
    times = log_log(given.size_bytes[rows].astype(np.float64), given.time_ns[rows], sizes)
    return np.asarray(times * bus_share(kind, ranks) / bus_share(kind, nearest), dtype=np.float64)
