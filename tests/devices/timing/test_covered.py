"""Law: the covered time before an instant is the number of nanoseconds before it that some interval has."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, strategies as st

from partita.devices.timing.covered import Covered

INTERVALS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 10)), max_size=8)


@given(INTERVALS)
def test_each_nanosecond_counts_once(intervals: list[tuple[int, int]]) -> None:
    """In any order, with empty intervals and such as meet or overlap; half a nanosecond is half of one."""
    columns = np.array([(start, start + length) for start, length in intervals], np.int64).reshape(-1, 2).T
    covered, instants = Covered(*columns), np.arange(45)
    inside = {at for start, length in intervals for at in range(start, start + length)}
    expected = [sum(at < before for at in inside) for before in instants.tolist()]
    assert covered.before(instants).tolist() == expected
    halves = [(low + high) / 2 for low, high in pairwise(expected)]
    assert covered.before(np.asarray(instants[:-1] + 0.5, np.float64)).tolist() == halves
