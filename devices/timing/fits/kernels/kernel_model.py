"""The fitted model of one family of kernels on one device.

    KernelModel(DecodeRows, H100, {"bf16": GroupFit(numbers 2100 ns, 0.81, ...; spread 0.11; surface of 110 rows)})
    .predict(rows)          what a measurement would say: 12.4 us, 80 % within 11.6 to 13.3
    .predict_kernels(rows)  the kernel alone: the formula of the numbers, times the exponential of the surface

Where a size lies outside of those fitted, the surface fades with each doubling, and the interval widens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from .....errors import InvalidArgumentError
from .....graph.arrays import Floats
from ....spec import DeviceSpec
from ..layers import WIDENING, SizeRanges, octaves_outside, with_interval
from ..prediction import Prediction
from ..surface import Surface
from .kernel_rows import KernelRows

R = TypeVar("R", bound=KernelRows)


@frozen(eq=False)
class KernelSurface(Generic[R]):
    """The rows that a surface was kept at, as the family has them, and the surface over their features."""

    rows: R
    surface: Surface


class GroupFit(NamedTuple):
    """What is fitted for one group of rows on one device.

    `spread` is half of the 80 % interval of the formula alone, in log time, and `launch_spread` that of a measurement
    that does not show the kernel.
    """

    numbers: tuple[float, ...]
    spread: float
    ranges: SizeRanges
    surface: KernelSurface[Any] | None = None  # Any: rows of the model's family
    launch_spread: float = 0.0


class KernelExplanation(NamedTuple):
    """Where the time of one run comes from; times in ns."""

    formula_ns: float
    residual_factor: float
    """of the surface; the predicted time is the formula's times this"""
    numbers: tuple[tuple[str, float, str], ...]
    """name, value and unit of what was fitted"""
    nearest: tuple[tuple[str, float], ...]
    """rows of the surface, the nearest first, each with its factor"""
    is_outside_range: bool
    low_ns: float
    high_ns: float


@frozen(eq=False)
class KernelModel(Generic[R]):
    """What is fitted on one device, group by group."""

    family: type[R]
    spec: DeviceSpec
    groups: Mapping[str, GroupFit]
    source: str = ""
    date: str = ""

    def has(self, rows: R) -> bool:
        """Whether all rows are of groups that were fitted."""
        return set(rows.groups) <= set(self.groups)

    def predict(self, rows: R) -> Prediction:
        """What is measured, with 80 % intervals; InvalidArgumentError for a group that was not fitted."""
        kernel_ns, half = self.kernels(rows, self.spec)
        time_ns, low_ns, high_ns = (
            self.timed_ns(rows, kernel_ns * np.exp(sign * half), self.spec) for sign in (0, -1, 1)
        )
        spread = self.launch_shares(rows, kernel_ns, self.spec) * self._launch_spreads(rows)
        down, up = np.hypot(np.log(time_ns / low_ns), spread), np.hypot(np.log(high_ns / time_ns), spread)
        return Prediction(time_ns, time_ns * np.exp(-down), time_ns * np.exp(up))

    def predict_kernels(self, rows: R) -> Prediction:
        """Times of the kernels alone, at least the floor of the device; errors as `predict`."""
        return at_least(with_interval(*self.kernels(rows, self.spec)), self.family.floor_ns(self.spec))

    def kernels(self, rows: R, spec: DeviceSpec) -> tuple[Floats, Floats]:
        """By row the kernel's time on `spec`, and half of its 80 % interval in log time."""
        formula_ns, mean, half = self.parts(rows, spec)
        return formula_ns * np.exp(mean), half

    def timed_ns(self, rows: R, kernel_ns: Floats, spec: DeviceSpec) -> Floats:
        """What a measurement as those of the fit says of kernels that take so long on `spec`."""
        times = np.empty(len(rows))
        for fit, of, some in self._by_group(rows):
            times[of] = some.timed_ns(kernel_ns[of], fit.numbers, spec)
        return times

    def launch_shares(self, rows: R, kernel_ns: Floats, spec: DeviceSpec) -> Floats:
        """By row the share of such a measurement that is not the kernel's."""
        shares = np.empty(len(rows))
        for fit, of, some in self._by_group(rows):
            shares[of] = some.launch_share(kernel_ns[of], fit.numbers, spec)
        return shares

    def _launch_spreads(self, rows: R) -> Floats:
        spreads = np.empty(len(rows))
        for fit, of, _ in self._by_group(rows):
            spreads[of] = fit.launch_spread
        return spreads

    def _by_group(self, rows: R) -> Iterator[tuple[GroupFit, NDArray[np.bool_], R]]:
        """The fit of each group, its rows as a mask, and themselves."""
        names = list(dict.fromkeys(rows.groups))
        if len(names) == 1:
            yield self.group(names[0]), np.ones(len(rows), dtype=np.bool_), rows
            return
        groups = np.array(rows.groups, dtype=object)
        for group in names:
            of = groups == group
            yield self.group(group), of, rows.take(of)

    def parts(self, rows: R, spec: DeviceSpec) -> tuple[Floats, Floats, Floats]:
        """By row the formula on `spec`, the log of the surface's factor, and half of the 80 % interval in log time."""
        formula_ns, mean, half = (np.empty(len(rows)) for _ in range(3))
        for fit, of, some in self._by_group(rows):
            formula_ns[of] = some.formula_ns(fit.numbers, spec)
            mean[of], half[of] = _residuals(fit, some, spec)
        return formula_ns, mean, half

    def group(self, name: str) -> GroupFit:
        """The fit of a group; InvalidArgumentError with the groups there are."""
        if name not in self.groups:
            raise InvalidArgumentError(
                f"{self.spec.name} has no fit of {self.family.WHAT} for {name!r}; it has {', '.join(self.groups)}"
            )
        return self.groups[name]

    def explain(self, rows: R, count: int = 5) -> KernelExplanation:
        """Where the time of the first row comes from."""
        one = rows.take(np.array([0]))
        fit, said = self.group(one.groups[0]), self.predict_kernels(one)
        formula_ns, mean, _ = self.parts(one, self.spec)
        named = zip(self.family.NUMBERS, fit.numbers, strict=True)
        return KernelExplanation(
            float(formula_ns[0]),
            float(np.exp(mean[0])),
            tuple((number.name, value, number.unit) for number, value in named),
            _nearest(fit, one, self.spec, count),
            bool(octaves_outside(one.ranged, fit.ranges)[0] > 0),
            float(said.low_ns[0]),
            float(said.high_ns[0]),
        )


def at_least(said: Prediction, floor_ns: float) -> Prediction:
    """The same, but no time below the floor."""
    if not floor_ns:
        return said
    time_ns, low_ns, high_ns = (np.maximum(column, floor_ns) for column in said[:3])
    return Prediction(time_ns, low_ns, high_ns, said.provenance)


def _residuals(fit: GroupFit, rows: KernelRows, spec: DeviceSpec) -> tuple[Floats, Floats]:
    """By row ln(time / formula), and half of the 80 % interval."""
    outside = octaves_outside(rows.ranged, fit.ranges)
    wide = fit.spread * (1 + outside * WIDENING)
    if fit.surface is None:
        return np.zeros(len(rows)), wide
    surface = fit.surface.surface
    mean, deviation = surface.at(rows.features(spec))
    trust = np.exp2(-outside)
    half = np.sqrt((trust * surface.numbers.quantile * deviation) ** 2 + (1 - trust**2) * wide**2)
    return trust * mean, half


def _nearest(fit: GroupFit, one: KernelRows, spec: DeviceSpec, count: int) -> tuple[tuple[str, float], ...]:
    if fit.surface is None:
        return ()
    rows, surface = fit.surface.rows, fit.surface.surface
    factors = np.exp(surface.rows.residual)
    return tuple((described(rows, int(i)), float(factors[i])) for i in surface.nearest(one.features(spec), count))


def described(rows: KernelRows, row: int) -> str:
    """One row in words: "dtype bf16, m 8, n 4096"."""
    texts = [f"{name} {column[row]}" for name, column in rows.texts.items()]
    return ", ".join([*texts, *(f"{name} {column[row]}" for name, column in rows.counts.items())])
