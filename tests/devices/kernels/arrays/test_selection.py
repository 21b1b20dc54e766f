"""Ranking, searching and comparing elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array, DataType
from tests.devices.kernels.harness import check_shapes, run, shapes
from tests.devices.kernels.random_arrays import NUMBERS, arrays, ints, same

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@given(arrays(least=1, dtypes=NUMBERS), st.data())
def test_top_k_sorts_down_and_prefers_lower_indices(x: Array, data: st.DataObject) -> None:
    k = data.draw(st.integers(0, x.shape[-1]))
    values, places = check_shapes("TopKV2", x, np.int32(k))
    for row in np.ndindex(*x.shape[:-1]):
        ranked = np.argsort(-x[row].astype(np.float64), kind="stable").tolist()
        assert places[row].tolist() == ranked[:k]
        assert same(values[row], x[row][np.array(ranked[:k], np.int64)])


@given(st.integers(0, 80), st.integers(0, 3), st.integers(0, 99), st.sampled_from([np.float32, np.uint8, np.int64]))
def test_top_k_of_wide_rows_is_that_of_sorting_them(k: int, rows: int, seed: int, dtype: Any) -> None:
    """Few of many elements are found among candidates; a NaN comes last in any case."""
    x = np.random.default_rng(seed).integers(0, 30, (rows, 520)).astype(dtype)
    expected = np.argsort(-x.astype(np.int64), axis=-1, kind="stable")[:, :k]
    assert run("TopKV2", x, np.int32(k))[1].tolist() == expected.tolist()
    if dtype is np.float32 and rows:
        x[0, 0] = np.nan
        expected = np.argsort(-x, axis=-1, kind="stable")[:, :k]
        assert run("TopKV2", x, np.int32(k))[1].tolist() == expected.tolist()


@given(arrays(least=1, smallest=1, dtypes=NUMBERS), st.data())
def test_the_nth_element_is_that_of_the_sorted_row(x: Array, data: st.DataObject) -> None:
    n = data.draw(st.integers(0, x.shape[-1] - 1))
    assert same(check_shapes("NthElement", x, np.int32(n)), np.sort(x, axis=-1)[..., n])
    largest = run("NthElement", x, np.int32(n), reverse=True)
    assert same(np.asarray(largest), np.asarray(np.sort(x, axis=-1)[..., ::-1][..., n]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (("TopKV2", X, np.int32(4)), "input must have at least k columns. Had 3, needed 4"),
        (("TopKV2", X, np.int32(-1)), "Need k >= 0, got -1"),
        (("TopKV2", X[0, 0], np.int32(0)), "input must be >= 1-D, got shape []"),
        (("NthElement", X, np.int32(3)), "Input must have last dimension > n = 3"),
        (("InTopKV2", X, ints(2), np.int32(1)), "First dimension of predictions 2 must match length of targets 1"),
        (("Where", np.bool_(True)), "WhereOp : Unhandled input dimensions: 0"),
        (("LowerBound", X, X[:1]), "Leading dim_size of both tensors must match."),
    ],
)
def test_impossible_requests_are_refused_in_these_words(call: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        run(*call)
    assert caught.value.message == message


def test_in_top_k_counts_what_is_strictly_better_and_wants_finite_rows() -> None:
    x = np.array([[1, 1, 1, 0], [np.nan, 1, 2, 3], [np.inf, 1, 2, 3]], np.float32)
    assert check_shapes("InTopK", x, ints(2, 0, 0), k=1).tolist() == [True, False, False]
    assert check_shapes("InTopKV2", X, ints(2, 7), np.int32(1)).tolist() == [True, False]
    assert check_shapes("InTopKV2", X[:, :0], ints(0, 0), np.int64(1)).tolist() == [False, False]


@given(st.lists(st.integers(0, 9), max_size=9), st.lists(st.integers(-1, 10), min_size=1, max_size=5))
def test_bounds_are_those_of_numpys_search(row: list[int], values: list[int]) -> None:
    sorted_row, wanted = np.array([sorted(row)], np.int32), np.array([values], np.int32)
    for op, side in (("LowerBound", "left"), ("UpperBound", "right")):
        expected = np.searchsorted(sorted_row[0], wanted[0], side=side)  # type: ignore[call-overload]  # a side from a variable
        assert check_shapes(op, sorted_row, wanted, out_type=DataType.INT64).tolist() == [expected.tolist()]


def test_the_best_along_any_axis() -> None:
    """ApproxTopK is exact; the largest or the smallest, along the axis of its attr."""
    x = np.array([[3, 1], [1, 5], [2, 4]], np.float32)
    best, places = check_shapes("ApproxTopK", x, k=2, reduction_dimension=0)
    assert (best.tolist(), places.tolist()) == ([[3, 5], [2, 4]], [[0, 1], [2, 2]])
    least, places = check_shapes("ApproxTopK", x, k=1, is_max_k=False)
    assert (least.tolist(), places.tolist()) == ([[1], [1], [2]], [[1], [0], [0]])
    with pytest.raises(InvalidArgumentError, match="input must have last dimension >= k = 3 but was 2"):
        run("ApproxTopK", x, k=3)
    with pytest.raises(InvalidArgumentError, match=r"input must be >= 1-D, got shape \[\]"):
        run("ApproxTopK", np.float32(3), k=1)
    with pytest.raises(InvalidArgumentError, match="reduction_dimension 1 is no axis of an input of rank 1"):
        run("ApproxTopK", x[0], k=1, reduction_dimension=1)


def test_bounds_compare_not_a_number_as_less_than_nothing() -> None:
    rows, values = np.array([[1.0, np.nan]]), np.array([[3.0, np.nan]])
    assert run("LowerBound", rows, values).tolist() == [[1, 0]]
    assert run("UpperBound", rows, values).tolist() == [[2, 2]]


def test_shapes_leave_open_what_values_decide() -> None:
    assert shapes("TopKV2", (2, None), ()) == [(2, None), (2, None)]
    assert shapes("Where", (2, 3)) == [(None, 2)]
    assert shapes("Unique", None) == [(None,), None]
    assert shapes("DynamicPartition", (4, 2), (4,), num_partitions=2) == [(None, 2)] * 2
    assert shapes("DynamicStitch", [ints(0, 5)], [(2, 3)]) == [(6, 3)]
    assert shapes("DynamicStitch", [(2,)], [(2, 3)]) == [(None, 3)]
