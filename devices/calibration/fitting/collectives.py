"""Fits the time of collectives to measured curves of any number of systems.

Rows are (system, kind, ranks, bytes, time), with the version of the library where it is known:

    rows -> smooth curves at knots of size (`collective_process`) -> all kinds and rank counts (`collective_laws`)
         -> a `CollectiveModel` of each system

Systems whose ranks are joined by links in pairs come with the number of rings that the first n ranks have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....errors import InvalidArgumentError
from ....graph.arrays import Floats
from ...timing.collectives.kinds import MEASURED_KINDS, bus_share, kind_named
from ...timing.collectives.measured import CollectiveModel, LibraryVersions
from .collective_laws import MESH_RANKS, RANKS, KnownCurve, SystemLinks, complete, shared_shifts
from .collective_process import FIRST_LOG2_BYTES, PER_OCTAVE, Curve, CurveRows, SmoothCurves, smooth_curves

_FEWEST = 3  # rows of a curve: it has as many numbers
_PEER_BYTES_PER_S = 100e9  # bus bandwidth above which ranks have links of their own, not PCIe


class CollectiveRows(NamedTuple):
    """Measurements in columns: names of systems and kinds, ranks, bytes as the kind counts them, times in ns.

    `versions` are those of the library, "" where it is not known, or nothing.
    """

    systems: Sequence[str]
    kinds: Sequence[str]
    ranks: NDArray[np.int64]
    size_bytes: NDArray[np.int64]
    time_ns: Floats
    versions: Sequence[str] = ()


def fit_collectives(
    rows: CollectiveRows, *, source: str, date: str, meshes: Mapping[str, Mapping[int, int]] | None = None
) -> dict[str, CollectiveModel]:
    """The model of each system, learnt from the rows of all.

    `meshes` has the systems whose ranks are joined in pairs, each with the number of rings of its first n ranks.
    InvalidArgumentError for an unknown kind, values that are not positive, kinds without curves of their own
    (broadcast, send_recv) and a curve of fewer than three rows.
    """
    names = list(dict.fromkeys(rows.systems))
    of_curve = _curves(rows, names)
    rates = _best_rates(rows, names)
    versions = _versions(rows, names, of_curve)
    known = list(dict.fromkeys(versions))
    smooth = smooth_curves(_columns(rows, names, rates, np.array([known.index(name) for name in versions])), of_curve)
    links = {
        s: SystemLinks(bool(rates[s] <= _PEER_BYTES_PER_S), (meshes or {}).get(name)) for s, name in enumerate(names)
    }
    systems: dict[int, dict[tuple[int, int], KnownCurve]] = {s: {} for s in links}
    for (s, k, n), curve in smooth.curves.items():
        systems[s][k, n] = KnownCurve(curve.log_ns, curve.sd)
    shifts = shared_shifts(systems, links)
    models = {}
    for s, name in enumerate(names):
        log_ns, sd = complete(systems[s], links[s], shifts[links[s].on_pcie])
        rings = links[s].rings
        models[name] = CollectiveModel(
            RANKS if rings is None else MESH_RANKS,
            FIRST_LOG2_BYTES,
            PER_OCTAVE,
            log_ns,
            sd,
            frozenset((MEASURED_KINDS[k], n) for k, n in systems[s]),
            sum(len(where) for key, where in of_curve.items() if key[0] == s),
            source,
            date,
            _libraries(smooth, s, known),
            () if rings is None else tuple(rings.get(n, 0) for n in MESH_RANKS),
        )
    return models


def _curves(rows: CollectiveRows, names: list[str]) -> dict[Curve, NDArray[np.int64]]:
    """The row numbers of each curve, in sorted order."""
    if not (np.all(rows.ranks >= 2) and np.all(rows.size_bytes > 0) and np.all(rows.time_ns > 0)):
        raise InvalidArgumentError("collectives: ranks below 2, or a size or time that is not above 0; correct the row")
    numbers: dict[Curve, list[int]] = {}
    for i, (system, kind) in enumerate(zip(rows.systems, rows.kinds, strict=True)):
        full = kind_named(kind)
        if full not in MEASURED_KINDS:
            raise InvalidArgumentError(f"{kind!r} has no curve of its own; leave its rows out: it follows from others")
        numbers.setdefault((names.index(system), MEASURED_KINDS.index(full), int(rows.ranks[i])), []).append(i)
    for (s, k, n), where in numbers.items():
        if len(set(rows.size_bytes[where].tolist())) < _FEWEST:
            raise InvalidArgumentError(
                f"{names[s]!r}: {MEASURED_KINDS[k]} of {n} ranks has {len(where)} rows, a curve needs {_FEWEST} sizes; "
                "add rows or leave that curve out"
            )
    return {key: np.array(where) for key, where in sorted(numbers.items())}


def _best_rates(rows: CollectiveRows, names: list[str]) -> Floats:
    """The best bus bandwidth of each system in bytes/s."""
    best = np.zeros(len(names))
    for i, (system, kind) in enumerate(zip(rows.systems, rows.kinds, strict=True)):
        rate = bus_share(kind_named(kind), int(rows.ranks[i])) * rows.size_bytes[i] / rows.time_ns[i] * 1e9
        best[names.index(system)] = max(best[names.index(system)], rate)
    return best


def _versions(rows: CollectiveRows, names: list[str], of_curve: Mapping[Curve, NDArray[np.int64]]) -> list[str]:
    """The version of each row; one without takes the commonest of its curve, else of its system."""
    given = list(rows.versions) or [""] * len(rows.systems)
    for s in range(len(names)):
        of_system = [given[i] for key, where in of_curve.items() if key[0] == s for i in where]
        for key, where in of_curve.items():
            if key[0] == s:
                common = commonest([given[i] for i in where]) or commonest(of_system)
                for i in where:
                    given[i] = given[i] or common
    return given


def commonest(versions: Sequence[str]) -> str:
    """The commonest of versions, the first of several; "" if none is known."""
    known = [version for version in versions if version]
    return max(known, key=known.count) if known else ""


def _columns(rows: CollectiveRows, names: list[str], rates: Floats, version: NDArray[np.int64]) -> CurveRows:
    system = np.array([names.index(name) for name in rows.systems])
    kind = np.array([MEASURED_KINDS.index(kind_named(name)) for name in rows.kinds])
    sizes = rows.size_bytes.astype(np.float64)
    return CurveRows(system, kind, np.log2(rates)[system], rows.ranks, sizes, rows.time_ns, version)


def _libraries(smooth: SmoothCurves, system: int, known: list[str]) -> LibraryVersions:
    """Which version each curve of a system is of, and the shifts to others that it has."""
    of_curves = {
        (MEASURED_KINDS[k], n): known[curve.version] for (s, k, n), curve in smooth.curves.items() if s == system
    }
    shifts = {(known[a], known[b]): shift for (a, b), shift in smooth.shifts.items() if known[b] in of_curves.values()}
    return LibraryVersions({key: name for key, name in of_curves.items() if name}, shifts)
