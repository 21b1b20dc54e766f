"""The Pareto front holds the rows that no other beats, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from partita.scenarios import pareto_front

COST = st.integers(0, 6).map(float) | st.just(float("inf"))


@given(st.lists(st.tuples(COST, COST), max_size=30))
def test_the_front_is_what_nothing_beats(rows: list[tuple[float, float]]) -> None:
    """As its definition says for every pair of rows; equal rows are all on it or all not."""
    front = [row for row, (a, b) in enumerate(rows) if not any(x <= a and y <= b and (x < a or y < b) for x, y in rows)]
    first, second = np.array(rows, dtype=np.float64).reshape(-1, 2).T
    assert pareto_front(first, second).tolist() == front


def test_an_unknown_cost_is_on_no_front() -> None:
    """NaN beats nothing, and is beaten by nothing."""
    assert pareto_front(np.array([1.0, np.nan, 2.0]), np.array([2.0, 1.0, np.nan])).tolist() == [0]


def test_columns_are_of_one_length() -> None:
    """Others are refused with both shapes."""
    with pytest.raises(InvalidArgumentError, match=r"\(2,\) and \(3,\)"):
        pareto_front(np.zeros(2), np.zeros(3))
