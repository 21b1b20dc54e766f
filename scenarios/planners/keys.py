"""Rows that are alike in some columns: what depends on these alone is computed once for each, and spread over rows.

kinds, number = distinct_rows({"tp": [1, 2, 1], "cp": [1, 1, 1]})
    kinds {"tp": [1, 2], "cp": [1, 1]}    number [0, 1, 0]: values[number] has a value of each row
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...graph.arrays import Positions


def distinct_rows(
    columns: Mapping[str, NDArray[Any]],  # Any: numbers or flags
) -> tuple[dict[str, NDArray[Any]], Positions]:
    """The combinations of values that occur, as columns, and by row the number of its own; in ascending order."""
    rows = len(next(iter(columns.values())))
    code, room = np.zeros(rows, dtype=np.int64), 1
    for column in columns.values():
        values, place = np.unique(column, return_inverse=True)
        if room * len(values) >= 1 << 62:  # before codes of different rows could be equal
            kinds, code = np.unique(code, return_inverse=True)
            room = len(kinds)
        code, room = code * len(values) + place, room * len(values)
    _, first, number = np.unique(code, return_index=True, return_inverse=True)
    return {name: column[first] for name, column in columns.items()}, number
