"""From measured layers, attention or grouped products, to the report on a fitted model of them.

    rows        ("fwd", (1, 4096, 8, 8, 128, 128), 0.32), ...: the share of a stated rate that each layer reached
    report      the model, its numbers with intervals, its error on sizes not seen, and the datasheet's error

Every size is left out once, and predicted by a fit of all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...graph.arrays import Numbers
from ..spec import DeviceSpec
from ..timing.fits.products import bf16_peak
from .fitting.layers import LayerFit, fit_layers, left_out
from .parts import FOLDS, Model, NullModel, PartReport, fold_of_rows, mape, numbers_of
from .sources.layer_tables import in_columns
from .sources.measurements import STATED_PEAK_FLOPS_PER_S, MeasuredLayer


def fit_layer_part(
    part: str, fit: LayerFit[Any], rows: Sequence[MeasuredLayer], spec: DeviceSpec, source: str, date: str
) -> PartReport:
    """The model of one sort of layers (Any), with the errors on sizes left out one by one."""
    timed = sorted(rows)
    layers, share = in_columns(timed, fit.model.LAYERS), np.array([row.share for row in timed])

    def fitted(of: Numbers) -> Model:
        return fit_layers(fit, layers.where(of), share[of], STATED_PEAK_FLOPS_PER_S, source=source, date=date)

    fold_of = fold_of_rows(len(share))
    model = fitted(np.arange(len(share)))
    folds = [fitted(np.flatnonzero(fold_of != fold)) for fold in range(FOLDS)]
    numbers = []
    for name, of_kind in model.numbers.items():
        least, greatest = (type(of_kind)(*len(of_kind) * (bound,)) for bound in (0.0, float("inf")))
        each = numbers_of(of_kind, [fold.numbers[name] for fold in folds], least, greatest)
        numbers += [number._replace(name=f"{name}.{number.name}") for number in each]
    time_ns = layers.flops * 1e9 / (STATED_PEAK_FLOPS_PER_S * share)
    nulls = (NullModel("datasheet", mape(model.least_ns(layers, bf16_peak(spec)), time_ns)),)
    error = mape(np.exp(-left_out(fit, layers, share, STATED_PEAK_FLOPS_PER_S)), np.ones(len(share)))
    return PartReport(part, len(share), error, nulls, tuple(numbers), model)
