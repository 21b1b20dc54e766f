"""Fits the models of a family of kernels to measured times, device by device and group by group.

    fit_kernels({"H100": (rows, times), "A100": ...}, specs)
        numbers      least robust error of log time, from the family's start and within its bounds
        surface      a Gaussian process on what the formula misses (`surfaces.py`); some 110 rows a group
        ranges       of the sizes, beyond which nobody measured

With `pooled` devices learn from each other: the surface is fitted to the rows of all devices of a group together, with
the datasheets as further features (`machine`), so that like devices say alike. Each device then keeps rows of its own,
measured there or elsewhere, that say what all rows say of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, NamedTuple

import numpy as np
from scipy.optimize import least_squares

from ....errors import InvalidArgumentError
from ....graph.arrays import Floats, Numbers
from ...spec import DeviceSpec
from ...timing.fits.kernels.kernel_model import GroupFit, KernelModel, KernelSurface, R
from ...timing.fits.kernels.kernel_rows import KernelRows
from ...timing.fits.layers import ranges_of
from ...timing.fits.products import bf16_peak
from ...timing.fits.surface import Features, Surface
from .surfaces import OF_KERNELS, Effort, condensed_for, fit_surface

LEAST_SURFACE_ROWS = 12
"""with fewer, nothing can be said about lengths"""
PULL = 0.02
"""weight of the start in the fit of numbers: keeps one where no row says anything of it"""
MOST_TRIES = 30
"""steps of the search for numbers"""
LEAST_SPREAD, UNKNOWN_SPREAD = 0.01, 0.3
"""of the 80 % interval of a formula in log time, half: at least, and where no row shows its kernel"""


Lesson = Callable[[tuple[float, ...]], Floats]
"""further errors of numbers, in log time, beside those of the times"""


class TimedKernels(NamedTuple, Generic[R]):
    """Measured rows of one device, and their times in ns."""

    rows: R
    time_ns: Floats
    spec: DeviceSpec


def machine(spec: DeviceSpec) -> dict[str, float]:
    """The datasheet of a device as features: logs of rate, float32 rate, bandwidth and SMs."""
    return {
        "rate": float(np.log2(bf16_peak(spec))),
        "fp32 rate": float(np.log2(spec.peak_flops_per_s["fp32"])),
        "bandwidth": float(np.log2(spec.memory_bandwidth_bytes_per_s)),
        "SMs": float(np.log2(max(1, spec.sm_count))),
    }


def fit_kernels(
    measured: Mapping[str, TimedKernels[R]],
    *,
    source: str,
    date: str,
    pooled: bool = False,
    lessons: Mapping[str, Lesson] | None = None,
) -> dict[str, KernelModel[R]]:
    """The model of each device; InvalidArgumentError for times that cannot be, by device.

    `lessons` are further errors of the numbers, by device, such as those of labels that only teach; a family with
    lessons has one group.
    """
    lessons = lessons or {}
    for name, timed in measured.items():
        _check(name, timed)
    fits: dict[str, dict[str, GroupFit]] = {name: {} for name in measured}
    for group in dict.fromkeys(group for timed in measured.values() for group in timed.rows.groups):
        some = {name: part for name, timed in measured.items() if len((part := _of_group(timed, group)).rows)}
        for name, fit in _fit_group(some, pooled, lessons).items():
            fits[name][group] = fit
    return {
        name: KernelModel(type(timed.rows), timed.spec, fits[name], source, date) for name, timed in measured.items()
    }


def _check(name: str, timed: TimedKernels[Any]) -> None:
    if len(timed.time_ns) != len(timed.rows):
        raise InvalidArgumentError(f"{name}: {len(timed.time_ns)} times of {len(timed.rows)} rows; give one each")
    if len(timed.rows) and (not np.all(np.isfinite(timed.time_ns)) or np.min(timed.time_ns) <= 0):
        raise InvalidArgumentError(f"{name}: a time is {np.min(timed.time_ns)} ns; it must be above 0")


def _of_group(timed: TimedKernels[R], group: str) -> TimedKernels[R]:
    of = np.array([each == group for each in timed.rows.groups], dtype=np.bool_)
    return TimedKernels(timed.rows.take(of), timed.time_ns[of], timed.spec)


def _fit_group(
    measured: Mapping[str, TimedKernels[R]], pooled: bool, lessons: Mapping[str, Lesson]
) -> dict[str, GroupFit]:
    if pooled:
        return _fit_together(measured, lessons)
    fits = {}
    for name, timed in measured.items():
        key = (type(timed.rows), timed.spec, name in lessons, *_contents(timed))
        if key not in _fitted_alone:
            _fitted_alone[key] = _fit_together({name: timed}, lessons)[name]
        fits[name] = _fitted_alone[key]
    return fits


_fitted_alone: dict[tuple[Any, ...], GroupFit] = {}
"""fits of one group on one device by the contents of their rows: leaving out each device in turn fits the same again"""


def _contents(timed: TimedKernels[Any]) -> tuple[bytes | tuple[str, ...], ...]:
    texts, counts = timed.rows.texts.values(), timed.rows.counts.values()
    return (timed.time_ns.tobytes(), *texts, *(column.tobytes() for column in counts))


def _fit_together(measured: Mapping[str, TimedKernels[R]], lessons: Mapping[str, Lesson]) -> dict[str, GroupFit]:
    numbers = {name: fit_numbers(timed, lessons.get(name)) for name, timed in measured.items()}
    shown = {name: _shown(timed, numbers[name]) for name, timed in measured.items()}
    residuals = {name: shown_by.residuals for name, shown_by in shown.items()}
    first = next(iter(measured.values())).rows
    surfaces: dict[str, KernelSurface[R] | None] = {}
    if first.has_surface(first.groups[0]):
        some = {name: shown_by.timed for name, shown_by in shown.items()}
        surfaces = _pooled(some, residuals) if len(measured) > 1 else _alone(some, residuals)
    fits = {}
    for name, timed in measured.items():
        few = np.sqrt((len(timed.rows) + 1) / max(len(timed.rows) - len(numbers[name]), 1))
        launches = shown[name].launches
        fits[name] = GroupFit(
            numbers[name],
            _spread(residuals[name], few),
            ranges_of(timed.rows.ranged),
            surfaces.get(name),
            launch_spread=_spread(launches, few) if len(launches) else 0.0,
        )
    return fits


class _Shown(NamedTuple):
    """The measured rows that show their kernels, the logs of kernel / formula, and of measured / said of the others."""

    timed: TimedKernels[Any]  # Any: rows of every family
    residuals: Floats
    launches: Floats


def _shown(timed: TimedKernels[Any], numbers: tuple[float, ...]) -> _Shown:
    rows = timed.rows
    formula_ns = rows.formula_ns(numbers, timed.spec)
    kernel_ns = rows.shown_ns(timed.time_ns, formula_ns, numbers, timed.spec)
    is_shown = np.isfinite(kernel_ns)
    hidden = np.log(timed.time_ns / rows.timed_ns(formula_ns, numbers, timed.spec))[~is_shown]
    some = TimedKernels(rows.take(is_shown), timed.time_ns[is_shown], timed.spec)
    return _Shown(some, np.log(kernel_ns[is_shown] / formula_ns[is_shown]), hidden)


def _spread(residuals: Floats, few: float) -> float:
    """Half of the 80 % interval of residuals, as short as a file holds it; that of few rows is wider."""
    if not len(residuals):
        return UNKNOWN_SPREAD
    return float(f"{max(np.quantile(np.abs(residuals), 0.8) * few, LEAST_SPREAD):.6g}")


def _some(timed: TimedKernels[Any]) -> TimedKernels[Any]:  # Any: rows of every family
    """At most `NUMBER_ROWS` of the rows."""
    most = timed.rows.NUMBER_ROWS
    if len(timed.rows) <= most:
        return timed
    some = np.sort(np.random.default_rng(0).permutation(len(timed.rows))[:most])
    return TimedKernels(timed.rows.take(some), timed.time_ns[some], timed.spec)


def fit_numbers(timed: TimedKernels[Any], lesson: Lesson | None = None) -> tuple[float, ...]:  # Any: every family
    """The numbers of one group on one device with the least robust error of log time, and of a lesson."""
    numbers = timed.rows.NUMBERS
    timed = _some(timed)
    start, least, most = (
        np.log([getattr(number, field) for number in numbers]) for field in ("start", "least", "most")
    )
    measured, is_relative = np.log(timed.time_ns), timed.rows.HAS_RELATIVE_ERRORS

    def errors(logs: Floats) -> Floats:
        tried = tuple(np.exp(logs))
        said = timed.rows.timed_ns(timed.rows.formula_ns(tried, timed.spec), tried, timed.spec)
        off = np.log(said) - measured
        further = np.empty(0) if lesson is None else lesson(tried)
        return np.concatenate([np.expm1(off) if is_relative else off, PULL * (logs - start), further])

    bounds, robust = (least - 1e-9, most + 1e-9), timed.rows.ROBUST_BEYOND
    best = least_squares(errors, start, bounds=bounds, loss="soft_l1", f_scale=robust, max_nfev=MOST_TRIES)
    return tuple(float(f"{number:.6g}") for number in np.exp(best.x))


def _effort(rows: KernelRows) -> Effort:
    return OF_KERNELS._replace(likelihood_rows=rows.LIKELIHOOD_ROWS, most_rows=rows.KEPT_ROWS)


def _kept(rows: R, spec: DeviceSpec, kept: Numbers, surface: Any) -> KernelSurface[R]:
    some = rows.take(kept)
    return KernelSurface(some, Surface(some.features(spec), surface.residuals, surface.numbers))


def _alone(
    measured: Mapping[str, TimedKernels[R]], residuals: Mapping[str, Floats]
) -> dict[str, KernelSurface[R] | None]:
    """The surface of each device from its own rows."""
    surfaces: dict[str, KernelSurface[R] | None] = {}
    for name, timed in measured.items():
        if len(timed.rows) >= LEAST_SURFACE_ROWS:
            fitted = fit_surface(timed.rows.features(timed.spec), residuals[name], _effort(timed.rows))
            surfaces[name] = _kept(timed.rows, timed.spec, fitted.kept, fitted)
    return surfaces


def _pooled(
    measured: Mapping[str, TimedKernels[R]], residuals: Mapping[str, Floats]
) -> dict[str, KernelSurface[R] | None]:
    """The surface of each device from the rows of all."""
    measured = {name: part for name, part in measured.items() if len(part.rows)}
    parts = list(measured.values())
    if not parts:
        return {}
    rows = type(parts[0].rows).joined([part.rows for part in parts])
    if len(rows) < LEAST_SURFACE_ROWS:
        return {}
    features = _stacked([_on(part.rows, part.spec) for part in parts])
    every = np.concatenate([residuals[name] for name in measured])
    surfaces: dict[str, KernelSurface[R] | None] = {}
    asked = [_on(rows, part.spec) for part in parts]
    ends = np.cumsum([len(part.rows) for part in parts]).tolist()
    own = [slice(end - len(part.rows), end) for end, part in zip(ends, parts, strict=True)]
    fits = condensed_for(features, every, asked, own, _effort(rows))
    for name, part, fitted in zip(measured, parts, fits, strict=True):
        surfaces[name] = _kept(rows, part.spec, fitted.kept, fitted)
    return surfaces


def _on(rows: KernelRows, spec: DeviceSpec) -> dict[str, Floats]:
    """Features of rows on a device, its datasheet among them."""
    return rows.features(spec) | {name: np.full(len(rows), value) for name, value in machine(spec).items()}


def _stacked(parts: Sequence[Features]) -> dict[str, Floats]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
