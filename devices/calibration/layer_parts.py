"""Fits the parts of whole layers: attention and grouped products, whose rows are shares of a stated rate.

Their errors are of sizes that the fit has not seen, left out one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...graph.arrays import Floats, Numbers
from ..spec import DeviceSpec
from ..timing.fits.attention import Attentions
from ..timing.fits.grouped import GroupedProducts
from ..timing.fits.products import bf16_peak
from .fitting.attention import attention_left_out, fit_attention
from .fitting.grouped import fit_grouped, grouped_left_out
from .parts import FOLDS, Model, NullModel, PartReport, fold_of_rows, mape, numbers_of
from .sources.layer_tables import attentions_of, grouped_products_of
from .sources.measurements import STATED_PEAK_FLOPS_PER_S, MeasuredAttention, MeasuredGroupedProduct


def fit_attention_part(rows: Sequence[MeasuredAttention], spec: DeviceSpec, source: str, date: str) -> PartReport:
    """The model of attention."""
    timed = sorted(rows)
    layers, share = attentions_of(timed), np.array([row.share for row in timed])

    def fit(of: Numbers) -> Model:
        return fit_attention(layers.where(of), share[of], STATED_PEAK_FLOPS_PER_S, source=source, date=date)

    return _layers("attention", fit, layers, share, attention_left_out(layers, share, STATED_PEAK_FLOPS_PER_S), spec)


def fit_grouped_part(rows: Sequence[MeasuredGroupedProduct], spec: DeviceSpec, source: str, date: str) -> PartReport:
    """The model of grouped products."""
    timed = sorted(rows)
    layers, share = grouped_products_of(timed), np.array([row.share for row in timed])

    def fit(of: Numbers) -> Model:
        return fit_grouped(layers.where(of), share[of], STATED_PEAK_FLOPS_PER_S, source=source, date=date)

    return _layers("grouped", fit, layers, share, grouped_left_out(layers, share, STATED_PEAK_FLOPS_PER_S), spec)


def _layers(
    part: str,
    fit: Callable[[Numbers], Model],
    layers: Attentions | GroupedProducts,
    share: Floats,
    errors: Floats,
    spec: DeviceSpec,
) -> PartReport:
    """The report of a model of layers; `errors` are ln(measured / predicted) of sizes left out one by one."""
    fold_of = fold_of_rows(len(share))
    model = fit(np.arange(len(share)))
    folds = [fit(np.flatnonzero(fold_of != fold)) for fold in range(FOLDS)]
    numbers = []
    for name, fitted in model.numbers.items():
        least, greatest = (type(fitted)(*len(fitted) * (bound,)) for bound in (0.0, float("inf")))
        each = numbers_of(fitted, [fold.numbers[name] for fold in folds], least, greatest)
        numbers += [number._replace(name=f"{name}.{number.name}") for number in each]
    time_ns = layers.flops * 1e9 / (STATED_PEAK_FLOPS_PER_S * share)
    nulls = (NullModel("datasheet", mape(model.least_ns(layers, bf16_peak(spec)), time_ns)),)
    error = mape(np.exp(-errors), np.ones(len(share)))
    return PartReport(part, len(share), error, nulls, tuple(numbers), model)
