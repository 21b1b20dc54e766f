"""Which of two costs can only be had at each other's expense: the Pareto front, in columns and of plans.

days   [10, 8, 4, 6]
usd    [ 5, 7, 9, 9]
pareto_front(days, usd)      [0, 1, 2]: 6 days for 9 dollars is worse than 4 days for 9
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.arrays import Floats, Numbers
from ..estimates import Estimate


def pareto_front(first: Floats | Numbers, second: Floats | Numbers) -> Numbers:
    """The rows of two columns of costs [n] that no row beats, ascending: less of one and no more of the other.

    Rows with the same two costs beat each other not. A row with NaN is on no front. InvalidArgumentError for columns of
    different lengths.
    """
    if np.shape(first) != np.shape(second) or np.ndim(first) != 1:
        raise InvalidArgumentError(f"costs of shapes {np.shape(first)} and {np.shape(second)} must be [n] and [n]")
    rows = np.lexsort((second, first))
    rows = rows[~np.isnan(first[rows]) & ~np.isnan(second[rows])]
    x, y = first[rows], second[rows]
    is_new = np.ones(len(rows), dtype=np.bool_)  # not the same two costs as the row before
    is_new[1:] = (x[1:] != x[:-1]) | (y[1:] != y[:-1])
    points = y[is_new]
    is_on_front = np.ones(len(points), dtype=np.bool_)
    is_on_front[1:] = points[1:] < np.minimum.accumulate(points)[:-1]  # less than all that have less of the first cost
    return np.sort(rows[is_on_front[np.cumsum(is_new) - 1]])


def pareto_plans(estimates: Iterable[Estimate]) -> list[Estimate]:
    """The plans that no other beats in days and dollars of a run, the fastest first; those without are left out."""
    priced = [(each.days, each.usd_per_run, each) for each in estimates]
    known = [(days, usd, each) for days, usd, each in priced if days is not None and usd is not None]
    front = pareto_front(np.array([days for days, _, _ in known]), np.array([usd for _, usd, _ in known]))
    return [known[row][2] for row in sorted(front.tolist(), key=lambda row: known[row][:2])]
