"""From the rows of one sort to a fitted model, and how far it and simpler models are off on rows not seen.

    fit_product_part([TimedProduct(8, 3072, 64, 1, "TN", 3210.0), ...], spec, ...)
        PartReport: a `ProductModel`; 5.1 % off, the datasheet 18.4 %; floor_ns 2810, between 2790 and 2830

The rows are dealt to five folds in a fixed shuffled order, so that neighbours in a grid of sizes do not all stay in the
fit. Each fold is predicted by a fit of the other four. The five fits also say how sure a number is: its 80 % interval
is 1.28 standard deviations of a jackknife over the folds, in log space. A number at a bound of its search has no
interval.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from ...errors import InvalidArgumentError
from ...graph.arrays import Floats, Numbers
from ..spec import DeviceSpec
from ..timing.fits.products import Products, datasheet_ns
from .fitting.memory_bound import BOUNDS as MEMORY_BOUNDS, fit_memory_bound
from .fitting.null_models import datasheet_collective_ns, fit_roofline_3, log_log
from .fitting.products import bounds, fit_products
from .sources.measurements import TimedCollective, TimedMove, TimedProduct

Model = Any  # a ProductModel, MemoryBoundModel or CollectiveModel: they share `to_table` alone

FOLDS = 5
Z80 = 1.2815515655446004
"""standard deviations to the bounds of an 80 % interval"""
LEAST_PRODUCTS, LEAST_MOVES, LEAST_COLLECTIVES = 20, 10, 10
"""rows from which every fold's fit still has more rows than numbers"""
_AT_BOUND = 0.01
"""share by which a number at a bound of its search may differ from it"""


class FittedNumber(NamedTuple):
    """A fitted number; the unit is in its name. Its 80 % interval is None at the `bound` of its search."""

    name: str
    value: float
    low: float | None
    high: float | None
    bound: str = ""
    """"least" or "greatest" where the search ended at its bound"""


class NullModel(NamedTuple):
    """What a simpler model says of the same rows: its name and error in percent."""

    name: str
    mape_percent: float


class PartReport(NamedTuple):
    """One model: its name in `[fits]`, rows, errors on unseen rows in percent, numbers.

    The error is None of numbers that a source gives: nothing was fitted, so nothing can be left out.
    """

    name: str
    rows: int
    mape_percent: float | None
    null_models: tuple[NullModel, ...]
    numbers: tuple[FittedNumber, ...]
    model: Model

    @property
    def datasheet_percent(self) -> float | None:
        """The error of the datasheet alone; None where it says nothing of such times."""
        return next((null.mape_percent for null in self.null_models if null.name == "datasheet"), None)


class _Folds(NamedTuple):
    """Predictions of rows by fits without them, and those fits."""

    time_ns: Floats
    models: tuple[Model, ...]


def fold_of_rows(rows: int) -> Numbers:
    """The fold of each row: equal numbers, in a fixed shuffled order."""
    return np.asarray(np.random.default_rng(0).permutation(rows) % FOLDS, dtype=np.int64)


def cross_validated(rows: int, fit: Callable[[Numbers], Model], predict: Callable[[Model, Numbers], Floats]) -> _Folds:
    """Every row predicted by a fit of the four folds that it is not in."""
    time_ns, models = np.empty(rows), []
    fold_of = fold_of_rows(rows)
    for fold in range(FOLDS):
        out = np.flatnonzero(fold_of == fold)
        models.append(fit(np.flatnonzero(fold_of != fold)))
        time_ns[out] = predict(models[-1], out)
    return _Folds(time_ns, tuple(models))


def mape(predicted: Floats, measured: Floats) -> float:
    """The mean of |predicted / measured - 1| in percent."""
    return float(100 * np.mean(np.abs(predicted / measured - 1)))


def numbers_of(model: Any, folds: Sequence[Any], least: Any, greatest: Any) -> tuple[FittedNumber, ...]:
    """The numbers of a fit, in NamedTuples of equal fields (Any), with intervals of a jackknife over the folds."""
    numbers = []
    for name, bottom, top in zip(least._fields, least, greatest, strict=True):
        value = float(getattr(model, name))
        if value <= bottom * (1 + _AT_BOUND) or value >= top * (1 - _AT_BOUND):
            bound = "least" if value <= bottom * (1 + _AT_BOUND) else "greatest"
            numbers.append(FittedNumber(name, value, None, None, bound))
            continue
        values = np.array([getattr(fold, name) for fold in folds], dtype=np.float64)
        logs = np.log(np.maximum(values, value / 1000))
        wide = float(np.exp(Z80 * np.sqrt((FOLDS - 1) * np.mean((logs - logs.mean()) ** 2))))
        numbers.append(FittedNumber(name, value, value / wide, value * wide))
    return tuple(numbers)


def check_rows(rows: int, least: int, what: str, source: str) -> None:
    """InvalidArgumentError for fewer than `least` rows."""
    if rows < least:
        raise InvalidArgumentError(f"{source}: {rows} rows of {what} are too few to fit; measure at least {least}")


def fit_product_part(rows: Sequence[TimedProduct], spec: DeviceSpec, source: str, date: str) -> PartReport:
    """The model of products."""
    timed = sorted(rows)
    check_rows(len(timed), LEAST_PRODUCTS, "products", source)
    m, n, k, batch = (np.array([row[i] for row in timed], dtype=np.int64) for i in range(4))
    layout, time_ns = [row.layout for row in timed], np.array([row.time_ns for row in timed])

    def products(of: Numbers) -> Products:
        return Products(m[of], n[of], k[of], batch[of], tuple(layout[i] for i in of))

    def fit(of: Numbers) -> Model:
        return fit_products(products(of), time_ns[of], spec, source=source, date=date)

    def roofline(of: Numbers) -> Model:
        some = products(of)
        return fit_roofline_3(some.flops, some.bytes, time_ns[of])

    every = np.arange(len(timed))
    model = fit(every)
    folds = cross_validated(len(timed), fit, lambda fitted, of: fitted.predict(products(of)).time_ns)
    null = cross_validated(
        len(timed), roofline, lambda fitted, of: fitted.time_ns(products(of).flops, products(of).bytes)
    )
    nulls = (
        NullModel("datasheet", mape(datasheet_ns(products(every), spec), time_ns)),
        NullModel("roofline_3", mape(null.time_ns, time_ns)),
    )
    numbers = numbers_of(model.numbers, [fold.numbers for fold in folds.models], *bounds(spec))
    return PartReport("products", len(timed), mape(folds.time_ns, time_ns), nulls, numbers, model)


def fit_memory_part(rows: Sequence[TimedMove], spec: DeviceSpec, source: str, date: str) -> PartReport:
    """The model of ops that are bound by memory."""
    timed = sorted(rows)
    check_rows(len(timed), LEAST_MOVES, "memory-bound ops", source)
    size_bytes, time_ns = np.array([row[0] for row in timed], np.float64), np.array([row[1] for row in timed])
    bandwidth = spec.memory_bandwidth_bytes_per_s

    def fit(of: Numbers) -> Model:
        return fit_memory_bound(size_bytes[of], time_ns[of], bandwidth, source=source, date=date)

    model = fit(np.arange(len(timed)))
    folds = cross_validated(len(timed), fit, lambda fitted, of: fitted.predict(size_bytes[of]).time_ns)
    numbers = numbers_of(model.kinds["default"], [fold.kinds["default"] for fold in folds.models], *MEMORY_BOUNDS)
    nulls = (NullModel("datasheet", mape(size_bytes * 1e9 / bandwidth, time_ns)),)
    return PartReport("memory_bound", len(timed), mape(folds.time_ns, time_ns), nulls, numbers, model)


def fit_collective_part(rows: Sequence[TimedCollective], spec: DeviceSpec, source: str, date: str) -> PartReport:
    """The model of collectives inside one host."""
    fitting = import_module(f"{__package__}.fitting.collectives")
    timed = sorted(rows)
    check_rows(len(timed), LEAST_COLLECTIVES, "collectives", source)
    ranks, size_bytes = (np.array([row[i] for row in timed], dtype=np.int64) for i in (1, 2))
    kinds, time_ns = [row.kind for row in timed], np.array([row.time_ns for row in timed])

    def fit(of: Numbers) -> Model:
        few = [kinds[i] for i in of]
        columns = fitting.CollectiveRows([spec.name] * len(of), few, ranks[of], size_bytes[of], time_ns[of])
        return fitting.fit_collectives(columns, source=source, date=date)[spec.name]

    def predict(model: Model, of: Numbers) -> Floats:
        each = [model.predict(kinds[i], int(ranks[i]), size_bytes[i : i + 1]).time_ns[0] for i in of]
        return np.array(each, dtype=np.float64)

    def interpolate(seen: Numbers, of: Numbers) -> Floats:
        return np.array([_on_curve(timed, [timed[j] for j in seen], i) for i in of], dtype=np.float64)

    model = fit(np.arange(len(timed)))
    folds = cross_validated(len(timed), fit, predict)
    line = cross_validated(len(timed), lambda of: of, interpolate)
    sheet = np.array(
        [datasheet_collective_ns(t.kind, t.ranks, np.array([float(t.size_bytes)]), spec)[0] for t in timed]
    )
    nulls = [NullModel("datasheet", mape(sheet, time_ns))] if np.all(np.isfinite(sheet)) else []
    nulls.append(NullModel("log_log", mape(line.time_ns, time_ns)))
    return PartReport("collectives", len(timed), mape(folds.time_ns, time_ns), tuple(nulls), (), model)


def _on_curve(timed: Sequence[TimedCollective], seen: Sequence[TimedCollective], row: int) -> float:
    """The time of a row between the seen rows of its kind and ranks, or of its kind, or of all."""
    wanted = timed[row]
    same_kind = [each for each in seen if each.kind == wanted.kind]
    curve = [each for each in same_kind if each.ranks == wanted.ranks] or same_kind or seen
    sizes, times = (np.array([each[i] for each in curve], np.float64) for i in (2, 3))
    return float(log_log(sizes, times, np.array([float(wanted.size_bytes)]))[0])
