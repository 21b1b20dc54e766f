"""Kernels that look for elements: those that are not zero, that differ, that another list lacks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array, DataType
from tests.devices.kernels.harness import check_shapes, run
from tests.devices.kernels.random_arrays import arrays, ints, same, texts


@given(arrays(least=1, dtypes=(np.float32, np.int32, np.bool_, np.complex64)))
def test_where_lists_what_is_not_zero(x: Array) -> None:
    assert same(check_shapes("Where", x), np.argwhere(x != 0))


@given(st.lists(st.integers(0, 5), max_size=60), st.sampled_from([np.int32, np.float64, object]))
def test_unique_keeps_first_appearances_and_numbers_rebuild_the_input(values: list[int], dtype: Any) -> None:
    x = np.array(values, np.int64).astype(dtype) if dtype is not object else texts(*(b"x" * v for v in values))
    y, numbers, counts = check_shapes("UniqueWithCounts", x)
    assert y.tolist() == list(dict.fromkeys(x.tolist()))
    assert same(y[numbers], x)
    assert counts.tolist() == [x.tolist().count(v) for v in y.tolist()]
    assert same(run("Unique", x, out_idx=DataType.INT64)[1], numbers.astype(np.int64))


def test_unique_along_an_axis_compares_slices() -> None:
    x = np.array([[1, 2, 1], [3, 4, 3]])
    y, numbers, counts = check_shapes("UniqueWithCountsV2", x, ints(-1))
    assert y.tolist() == [[1, 2], [3, 4]]
    assert numbers.tolist() == [0, 1, 0]
    assert counts.tolist() == [2, 1]
    assert same(run("UniqueV2", np.array([1, 2, 1]), ints())[0], np.array([1, 2]))
    with pytest.raises(InvalidArgumentError, match="unique expects a 1D vector"):
        run("UniqueV2", x, ints())


def test_unique_takes_no_two_nans_for_equal() -> None:
    for times in (1, 20):
        y, numbers = run("Unique", np.array([np.nan, 0.0, -0.0, np.nan] * times))
        assert y.size == 1 + 2 * times
        assert numbers[:4].tolist() == [0, 1, 1, 2]


@given(st.lists(st.integers(0, 5)), st.lists(st.integers(0, 5)))
def test_list_diff_is_what_the_other_list_lacks(x: list[int], y: list[int]) -> None:
    out, places = check_shapes("ListDiff", ints(*x), ints(*y))
    assert places.tolist() == [i for i, v in enumerate(x) if v not in y]
    assert same(out, ints(*x)[places])
