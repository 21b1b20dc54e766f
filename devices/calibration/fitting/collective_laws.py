"""Curves of collectives that were not measured, from those that were: other rank counts, other kinds, other rings.

A time is a latency and the rest, which bytes take. Of a rank count without a curve:

    latency     that of the nearest count, and its growth per doubling
    rest        by the bytes that leave a rank over bus bandwidth, which is
                  with ports of their own    B - c / ranks, times what systems that do have the count show beside that
                  on PCIe                    up to 8 ranks less with each doubling, which adds a level to the tree: two
                                             below a switch, four on a socket, eight on both sockets
                  over a mesh of links       a ring's rate times the largest number of rings that share no link

What the level between two sockets costs is not in any row at hand; it is assumed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ....graph.arrays import Floats
from ...timing.collectives.kinds import MEASURED_KINDS, bus_share
from .collective_process import KNOTS

RANKS = (2, 4, 8, 16, 32, 64)
MESH_RANKS = (2, 3, 4, 5, 6, 7, 8)
NO_RING = 0.4  # assumed: of a ring's rate, where ranks without a ring go over PCIe; 10 of 25 GB/s
_NO_RING_SD = 0.5
_LAW_SD = 0.065  # of log time for each doubling of ranks beyond the measured ones
_LEVEL_SD = 0.30  # of the log of the rest for each level of a PCIe tree that was not measured
_MESH_SD = 0.037  # of log time over rings that were not measured
_KIND_SD = 0.25  # of log time where the kind was not measured
_LEVEL = 0.5  # assumed: share of bus bandwidth that a further level of a PCIe tree leaves
_MOST_ON_PCIE = 8  # ranks; more have no further level


class _Growth(NamedTuple):
    """How a kind grows with ranks where nothing else is known.

    `step` is the increase of the latency from 1 to 2 ranks as a share of the latency, `growth` the factor from one
    doubling's increase to the next (2: linear in ranks, 1: linear in doublings); `latency` and `bandwidth` are those of
    an all-gather = 1.
    """

    step: float
    growth: float
    latency: float
    bandwidth: float


_GROWTH = {
    "all_gather": _Growth(0.25, 2.0, 1.0, 1.0),
    "reduce_scatter": _Growth(0.25, 2.0, 1.0, 1.0),
    "all_reduce": _Growth(0.55, 1.7, 1.2, 1.16),
    "all_to_all": _Growth(0.15, 1.0, 1.15, 0.85),
}
_LOST_SHARE = 0.6  # c / B of the bus bandwidth B - c / ranks where one rank count is known


class KnownCurve(NamedTuple):
    """Log time at the knots and its standard deviation."""

    log_ns: Floats
    sd: Floats


Shift = tuple[int, int, bool]  # kind, ranks, whether the law knew two rank counts or one
OwnCurves = Mapping[tuple[int, int], KnownCurve]  # of one system, by kind and ranks


class SystemLinks(NamedTuple):
    """What joins the ranks of a system: PCIe or ports of their own; or links in pairs, with the rings by ranks."""

    on_pcie: bool
    rings: Mapping[int, int] | None = None


def shared_shifts(
    systems: Mapping[int, OwnCurves], links: Mapping[int, SystemLinks]
) -> dict[bool, dict[Shift, Floats]]:
    """By whether ranks are on PCIe, what systems with a rank count show beside the law from fewer ranks."""
    shifts: dict[bool, dict[Shift, Floats]] = {}
    for on_pcie in (False, True):
        seen: dict[Shift, list[Floats]] = {}
        for s, own in systems.items():
            if links[s].on_pcie != on_pcie or links[s].rings is not None:
                continue
            for (k, n), curve in own.items():
                fewer = {m: other.log_ns for (k2, m), other in own.items() if k2 == k and m < n}
                if fewer:
                    law = _follow(fewer, MEASURED_KINDS[k], n, on_pcie=on_pcie)
                    seen.setdefault((k, n, len(fewer) > 1), []).append(curve.log_ns - law)
        shifts[on_pcie] = {key: np.sum(found, axis=0) / (len(found) + 1.0) for key, found in seen.items()}
    return shifts


def complete(own: OwnCurves, joined: SystemLinks, shifts: Mapping[Shift, Floats]) -> tuple[Floats, Floats]:
    """Log time and standard deviation of all kinds and rank counts: measured curves as they are, others by the laws."""
    ranks = RANKS if joined.rings is None else MESH_RANKS
    log_ns = np.empty((len(MEASURED_KINDS), len(ranks), len(KNOTS)))
    sd = np.empty_like(log_ns)
    for k, kind in enumerate(MEASURED_KINDS):
        curves = {n: curve for (k2, n), curve in own.items() if k2 == k}
        extra = 0.0 if curves else _KIND_SD
        curves = curves or _from_other_kind(own, kind)
        for r, n in enumerate(ranks):
            if n in curves:
                log_ns[k, r], spread = curves[n]
            elif joined.rings is not None:
                log_ns[k, r], spread = _over_rings(curves, kind, n, joined.rings)
            else:
                shift = shifts.get((k, n, len(curves) > 1), np.zeros(len(KNOTS)))
                log_ns[k, r], spread = _beyond(curves, kind, n, joined, shift)
            sd[k, r] = np.hypot(spread, extra)
    return log_ns, sd


def _beyond(curves: Mapping[int, KnownCurve], kind: str, ranks: int, joined: SystemLinks, shift: Floats) -> KnownCurve:
    """The curve of a rank count by the law, for ranks that all reach each other alike, or over PCIe."""
    nearest = min(curves, key=lambda m: (abs(np.log2(m / ranks)), m))
    known = {m: curve.log_ns for m, curve in curves.items()}
    log_ns = _follow(known, kind, ranks, on_pcie=joined.on_pcie) + shift
    sd = np.hypot(curves[nearest].sd, _LAW_SD * abs(np.log2(ranks / nearest)))
    if joined.on_pcie:
        rest = np.maximum(1 - _latency(log_ns) / np.exp(log_ns), 0.0)
        sd = np.hypot(sd, _LEVEL_SD * _levels(nearest, ranks) * rest)
    return KnownCurve(log_ns, sd)


def _over_rings(curves: Mapping[int, KnownCurve], kind: str, ranks: int, rings: Mapping[int, int]) -> KnownCurve:
    """The curve of a rank count over the rings that it has: the mean of what each measured count says."""
    own = rings.get(ranks, 0)
    latency = _latency_between({m: _latency(curve.log_ns) for m, curve in curves.items()}, kind, ranks)
    said = []
    for m, curve in curves.items():
        if rings.get(m, 0):
            factor = bus_share(kind, ranks) / bus_share(kind, m) * rings[m] / (own or NO_RING)
            said.append(np.log(latency + np.maximum(np.exp(curve.log_ns) - _latency(curve.log_ns), 0.0) * factor))
    spread = np.mean([curve.sd for curve in curves.values()], axis=0)
    sd = np.hypot(spread, _MESH_SD if own else _NO_RING_SD) + 0.5 * np.std(said, axis=0)
    return KnownCurve(np.mean(said, axis=0), sd)


def _latency_between(known: Mapping[int, float], kind: str, ranks: int) -> float:
    """The latency of a rank count: between those of known ones, beyond them by the growth of the kind."""
    nearest = min(max(ranks, min(known)), max(known))
    counts = sorted(known)
    latency = float(np.interp(np.log2(nearest), np.log2(counts), [known[n] for n in counts]))
    law = _GROWTH[kind]
    return latency * (1 + law.step * _steps(law.growth, ranks)) / (1 + law.step * _steps(law.growth, nearest))


def _steps(growth: float, ranks: float) -> float:
    """Increases of the latency up to a rank count, the first doubling's = 1."""
    doublings = float(np.log2(ranks))
    return doublings if growth == 1 else (growth**doublings - 1) / (growth - 1)


def _latency(log_ns: Floats) -> float:
    return float(np.exp(log_ns[:5].mean()))  # 512 to 2048 bytes


def _levels(base: int, ranks: int) -> float:
    """Levels of a PCIe tree between two rank counts."""
    return max(0.0, float(np.log2(min(ranks, _MOST_ON_PCIE) / min(base, _MOST_ON_PCIE))))


def _follow(curves: Mapping[int, Floats], kind: str, ranks: int, *, on_pcie: bool) -> Floats:
    """The curve of a rank count from those of one or two others: the law of latency and bus bandwidth."""
    law = _GROWTH[kind]
    nearest = sorted(curves, key=lambda n: (abs(np.log2(n / ranks)), n))[:2]
    base = nearest[0]
    latency = {n: _latency(curves[n]) for n in nearest}
    rate = {n: bus_share(kind, n) / float(np.exp(curves[n][-1])) for n in nearest}
    slope = law.step / (1 + law.step * _steps(law.growth, base)) * latency[base]
    if len(nearest) == 2:
        low, high = sorted(nearest)
        slope = (latency[high] - latency[low]) / (_steps(law.growth, high) - _steps(law.growth, low))
    own = latency[base] + max(slope, 0.0) * (_steps(law.growth, ranks) - _steps(law.growth, base))
    own = max(own, 0.5 * latency[base])
    factor = bus_share(kind, ranks) / bus_share(kind, base)
    factor *= _LEVEL ** -_levels(base, ranks) if on_pcie else _lost_factor(rate, base, ranks)
    rest = np.maximum(np.exp(curves[base]) - latency[base], 0.0)
    return np.asarray(np.log(own + rest * factor), dtype=np.float64)


def _lost_factor(rate: Mapping[int, float], base: int, ranks: int) -> float:
    """How many times as long bytes take by the law B - c / ranks; `rate` has bus bandwidths of one or two counts."""
    lost = _LOST_SHARE
    if len(rate) == 2:
        low, high = sorted(rate)
        ratio = rate[low] / rate[high]
        lost = (1 - ratio) / (1 / low - ratio / high)
    lost = min(max(lost, -1.0), 0.9)
    return (1 - lost / base) / (1 - lost / ranks)


def _from_other_kind(own: OwnCurves, kind: str) -> dict[int, KnownCurve]:
    """Curves of a kind that was not measured, from the first kind that was."""
    other = min(k for k, _ in own)
    a, b = _GROWTH[MEASURED_KINDS[other]], _GROWTH[kind]
    curves = {}
    for n, (log_ns, sd) in ((n, curve) for (k, n), curve in own.items() if k == other):
        latency = _latency(log_ns)
        rest = np.maximum(np.exp(log_ns) - latency, 0.0) * a.bandwidth / b.bandwidth
        rest *= bus_share(kind, n) / bus_share(MEASURED_KINDS[other], n)
        curves[n] = KnownCurve(np.log(latency * b.latency / a.latency + rest), sd)
    return curves
