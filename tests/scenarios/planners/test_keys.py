"""Rows that are alike share one key, and the keys give all rows back."""

from __future__ import annotations

from math import prod

import numpy as np
from hypothesis import given, strategies as st

from partita.scenarios.planners.keys import distinct_rows

tables = st.integers(1, 5).flatmap(
    lambda width: st.lists(st.tuples(*[st.integers(-3, 3)] * width), min_size=1, max_size=40)
)


def as_columns(rows: list[tuple[int, ...]]) -> dict[str, np.ndarray]:
    return {f"c{i}": np.array(column) for i, column in enumerate(zip(*rows, strict=True))}


@given(tables)
def test_kinds_are_the_distinct_rows_in_ascending_order_and_numbers_lead_back(rows: list[tuple[int, ...]]) -> None:
    kinds, number = distinct_rows(as_columns(rows))
    of_kinds = list(zip(*(kinds[name].tolist() for name in kinds), strict=True))
    assert of_kinds == sorted(set(rows))
    assert [of_kinds[i] for i in number.tolist()] == rows


@given(st.lists(st.booleans(), min_size=1), st.integers(0, 9))
def test_flags_and_floats_are_keys_too(flags: list[bool], seed: int) -> None:
    sizes = np.random.default_rng(seed).choice([0.5, 1.5, 1e12], len(flags))
    kinds, number = distinct_rows({"flag": np.array(flags), "size": sizes})
    assert [kinds[name].dtype.kind for name in ("flag", "size")] == ["b", "f"]
    assert kinds["flag"][number].tolist() == flags
    assert np.array_equal(kinds["size"][number], sizes)


@given(st.integers(0, 1000))
def test_codes_of_many_columns_do_not_overflow(seed: int) -> None:
    """20 columns of some 30 values have more combinations than 64 bits; rows that differ in one column stay apart."""
    random = np.random.default_rng(seed)
    columns = {f"c{i}": random.integers(0, 1000, 30) for i in range(20)}
    twice = {name: np.concatenate([column, column]) for name, column in columns.items()}
    for i, column in enumerate(twice.values()):
        column[30 + i] += 1  # row i of the second half differs from that of the first in column i alone
    assert prod(len(np.unique(column)) for column in twice.values()) > 1 << 64
    kinds, number = distinct_rows(twice)
    assert len(kinds["c0"]) == len(set(zip(*(it.tolist() for it in twice.values()), strict=True)))
    assert (number[:20] != number[30:50]).all()
    assert np.array_equal(number[20:30], number[50:])
    assert all(np.array_equal(kinds[name][number], column) for name, column in twice.items())
