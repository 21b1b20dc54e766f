"""Whether predictions put alternatives in the right order, and how good the one is that they say is best.

    measured   4.0  5.0  6.0  7.0      predicted  3.9  6.1  5.8  7.2
        five pairs of six are in the same order, one is not: Kendall's tau-b (5 - 1) / 6 = 0.67
        the least predicted is the least measured: the choice is 0 % slower than the best

Rows without a measurement or a prediction are left out. Only what is said to fit can be chosen; the best measured is
that of all rows, since all of them ran.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ....graph.arrays import Floats
from .measured_set import RankedRows, RowPredictions
from .rows import Indices, MeasuredRows

LEAST_ROWS = 5
"""of a model whose order is judged"""


class OrderOfModel(NamedTuple):
    """How far the rows of a model are in the measured order; tau-b is 1 in the same order, -1 in the opposite one."""

    rows: int
    tau_b: float


class MeasuredChoice(NamedTuple):
    """What was measured of the row that is predicted best, of the best row, and how much more the former is."""

    rows: int
    chosen: float
    best: float
    excess_percent: float


class Rankings(NamedTuple):
    """Of a column, by model and by choice."""

    column: str
    kendall_tau_b: Mapping[str, OrderOfModel]
    best_that_fits: Mapping[str, MeasuredChoice]


def rankings(of: RankedRows, rows: MeasuredRows, said: RowPredictions) -> Rankings:
    """The order within models of `LEAST_ROWS` rows or more, and the choices among two rows or more."""
    predicted, measured = said.columns[of.column].value, rows.measured[of.column]
    known = np.isfinite(predicted) & np.isfinite(measured)
    fits = known if said.fits is None else known & said.fits
    orders, choices = {}, {}
    for name, indices in of.models.items():
        some = indices[known[indices]]
        tau = kendall_tau_b(predicted[some], measured[some]) if len(some) >= LEAST_ROWS else None
        if tau is not None:
            orders[name] = OrderOfModel(len(some), tau)
    for name, indices in of.choices.items():
        some, possible = indices[known[indices]], indices[fits[indices]]
        if len(some) > 1 and len(possible):
            choices[name] = _choice(some, possible, predicted, measured)
    return Rankings(of.column, orders, choices)


def _choice(some: Indices, possible: Indices, predicted: Floats, measured: Floats) -> MeasuredChoice:
    chosen, best = float(measured[possible[np.argmin(predicted[possible])]]), float(measured[some].min())
    return MeasuredChoice(len(some), chosen, best, 100 * (chosen / best - 1))


def kendall_tau_b(first: Floats, second: Floats) -> float | None:
    """(pairs in the same order - pairs in the opposite one) / sqrt(untied pairs of each) (Kendall, 1945).

    None where all values of a column are the same.
    """
    one, other = (np.sign(values[:, None] - values[None, :]) for values in (first, second))
    untied = float(np.abs(one).sum() * np.abs(other).sum())
    return float((one * other).sum() / np.sqrt(untied)) if untied else None
