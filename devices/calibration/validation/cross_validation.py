"""Folds: which rows are predicted from which others of the same file.

The distinct keys of a group are dealt to the folds in the order of the file, like cards: with 3 folds the first key
goes to fold 0, the second to 1, the third to 2, the fourth to 0. Rows of one key stay together, so no row is predicted
from a repetition of itself. The same file gives the same folds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from .measured_set import Fold
from .rows import MeasuredRows


def dealt_folds(
    rows: MeasuredRows,
    count: int,
    group_by: Sequence[str],
    part: str | None = None,
    *,
    apart_from: Sequence[str] = (),
) -> list[Fold]:
    """`count` folds of all rows, keys dealt within the groups of equal values of the columns `group_by`.

    Rows whose keys differ in the columns `apart_from` alone are in one fold. A fold that would predict nothing is left
    out.
    """
    names = sorted(set(rows.keys) - set(apart_from))
    keys_of_group: dict[tuple[object, ...], dict[tuple[object, ...], int]] = defaultdict(dict)
    fold_of = np.empty(len(rows), np.intp)
    for row in range(len(rows)):
        numbers = keys_of_group[tuple(rows.keys[name][row] for name in group_by)]
        fold_of[row] = numbers.setdefault(tuple(rows.keys[name][row] for name in names), len(numbers)) % count
    folds = [Fold(part, np.flatnonzero(fold_of != k), np.flatnonzero(fold_of == k)) for k in range(count)]
    return [fold for fold in folds if len(fold.test)]
