"""Tables are shared out whole, in one variable a rank."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from partita.scenarios.workloads.transformers.embedding_tables import shared_out


def test_the_largest_table_goes_first_to_the_rank_with_the_fewest_rows() -> None:
    """The example of the module."""
    layout = shared_out([100, 7, 60, 50], 2)
    assert layout.tables == ((0, 1), (2, 3))
    assert layout.rows == 110
    assert layout.first_rows([100, 7, 60, 50]).tolist() == [[0, 100], [0, 60]]


def test_a_rank_may_have_no_table() -> None:
    """All ranks have as many slots."""
    layout = shared_out([5, 4, 3], 4)
    assert layout.tables == ((0,), (1,), (2,), (None,))
    assert layout.first_rows([5, 4, 3]).tolist() == [[0]] * 4


@given(st.lists(st.integers(1, 50), min_size=1, max_size=12), st.integers(1, 5))
def test_every_table_has_rows_of_its_own(rows: list[int], ranks: int) -> None:
    """On one rank, where none of another table are, within the rows of the variable."""
    layout = shared_out(rows, ranks)
    firsts = layout.first_rows(rows)
    assert sorted(t for of_rank in layout.tables for t in of_rank if t is not None) == list(range(len(rows)))
    used = np.zeros((ranks, layout.rows), int)
    for table, place in enumerate(layout.places.tolist()):
        rank, slot = divmod(place, layout.slots)
        assert layout.tables[rank][slot] == table
        begin = int(firsts[rank, slot])
        used[rank, begin : begin + rows[table]] += 1
    assert used.max() == 1
    assert used.sum() == sum(rows)
