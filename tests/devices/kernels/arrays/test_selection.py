"""Ranking, searching, comparing and dealing out elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array, DataType
from tests.devices.kernels.harness import check_shapes, run, shapes
from tests.devices.kernels.random_arrays import NUMBERS, arrays, filled, ints, same, texts

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@given(arrays(least=1, dtypes=NUMBERS), st.data())
def test_top_k_sorts_down_and_prefers_lower_indices(x: Array, data: st.DataObject) -> None:
    k = data.draw(st.integers(0, x.shape[-1]))
    values, places = check_shapes("TopKV2", x, np.int32(k))
    for row in np.ndindex(*x.shape[:-1]):
        ranked = np.argsort(-x[row].astype(np.float64), kind="stable").tolist()
        assert places[row].tolist() == ranked[:k]
        assert same(values[row], x[row][np.array(ranked[:k], np.int64)])


@given(st.integers(1, 5), st.integers(0, 99), st.sampled_from([np.float32, np.uint8, np.int64]))
def test_top_k_of_long_rows_is_that_of_sorting_them(k: int, seed: int, dtype: Any) -> None:
    x = np.random.default_rng(seed).integers(0, 30, 500).astype(dtype)
    expected = np.argsort(-x.astype(np.int64), kind="stable")[:k]
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


def test_bounds_compare_not_a_number_as_less_than_nothing() -> None:
    rows, values = np.array([[1.0, np.nan]]), np.array([[3.0, np.nan]])
    assert run("LowerBound", rows, values).tolist() == [[1, 0]]
    assert run("UpperBound", rows, values).tolist() == [[2, 2]]


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


@given(arrays(least=1), st.data())
def test_stitching_a_partition_gives_the_input_back(x: Array, data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, x.ndim))
    marks = filled(x.shape[:rank], np.int32, data.draw(st.integers(0, 9))) % 3
    parts = check_shapes("DynamicPartition", x, marks, num_partitions=3)
    places = check_shapes(
        "DynamicPartition", np.arange(marks.size, dtype=np.int32).reshape(marks.shape), marks, num_partitions=3
    )
    for op in ("DynamicStitch", "ParallelDynamicStitch"):
        whole = check_shapes(op, list(places), list(parts))
        assert same(whole, x.reshape(marks.size, *x.shape[rank:]))


def test_stitching_lets_the_last_win_and_fills_gaps_with_zeros() -> None:
    made = run("DynamicStitch", [ints(0, 3), np.int32(0)], [X, X[1]])
    assert made.tolist() == [[3, 4, 5], [0, 0, 0], [0, 0, 0], [3, 4, 5]]
    assert run("DynamicStitch", [ints(1)], [texts(b"a")]).tolist() == [b"", b"a"]


@pytest.mark.parametrize(
    ("call", "attrs", "message"),
    [
        (("DynamicPartition", X, ints(1, 2)), {"num_partitions": 2}, "partitions[1] = 2 is not in [0, 2)"),
        (
            ("DynamicPartition", X, ints(1)),
            {"num_partitions": 2},
            "data.shape must start with partitions.shape, got data.shape = [2,3], partitions.shape = [1]",
        ),
        (("DynamicStitch", [ints(0, -1)], [X]), {}, "indices[1] is out of range"),
        (
            ("DynamicStitch", [ints(0, 1)], [X[:1]]),
            {},
            "data[0].shape = [1,3] does not start with indices[0].shape = [2]",
        ),
    ],
)
def test_bad_destinations_are_refused(call: Any, attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        run(*call, **attrs)
    assert caught.value.message == message


def test_shapes_leave_open_what_values_decide() -> None:
    assert shapes("TopKV2", (2, None), ()) == [(2, None), (2, None)]
    assert shapes("Where", (2, 3)) == [(None, 2)]
    assert shapes("Unique", None) == [(None,), None]
    assert shapes("DynamicPartition", (4, 2), (4,), num_partitions=2) == [(None, 2)] * 2
    assert shapes("DynamicStitch", [ints(0, 5)], [(2, 3)]) == [(6, 3)]
    assert shapes("DynamicStitch", [(2,)], [(2, 3)]) == [(None, 3)]
