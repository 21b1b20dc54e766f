"""Picking elements by their indices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array
from tests.devices.kernels.harness import check_shapes, run, shapes
from tests.devices.kernels.random_arrays import DTYPES, arrays, filled, index_tuples, ints, same, shapes_of, texts

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@given(arrays(least=1), shapes_of(most=2), st.data())
def test_gathering_is_numpys_take(x: Array, shape: tuple[int, ...], data: st.DataObject) -> None:
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    if x.shape[axis] == 0:
        shape = (0,)
    indices = np.random.default_rng(data.draw(st.integers(0, 9))).integers(0, max(x.shape[axis], 1), shape, np.int32)
    flat = x.take(indices.reshape(-1), axis=axis)  # never an element, which numpy would convert
    place = axis % x.ndim
    expected = flat.reshape((*x.shape[:place], *shape, *x.shape[place + 1 :]))
    assert same(check_shapes("GatherV2", x, indices, np.int32(axis)), expected)
    if place == 0:
        assert same(check_shapes("Gather", x, indices.astype(np.int64)), expected)


@given(st.data())
def test_batch_dims_gather_in_each_batch_entry(data: st.DataObject) -> None:
    batch = data.draw(shapes_of(1, 2, largest=3))
    x = filled((*batch, *data.draw(shapes_of(1, 3, smallest=1))), np.int64, 1)
    axis = data.draw(st.integers(len(batch), x.ndim - 1))
    wanted = data.draw(shapes_of(0, 2))
    indices = np.random.default_rng(0).integers(0, x.shape[axis], (*batch, *wanted))
    actual = check_shapes("GatherV2", x, indices, np.int32(axis), batch_dims=len(batch))
    for place in np.ndindex(*batch):
        assert same(actual[place], x[place].take(indices[place], axis=axis - len(batch)))
    if wanted:
        assert same(run("GatherV2", x, indices, np.int32(axis), batch_dims=-len(wanted)), actual)


@pytest.mark.parametrize(
    ("inputs", "attrs", "message"),
    [
        ((X, ints(0, 2), np.int32(0)), {}, "indices[1] = 2 is not in [0, 2)"),
        ((X, ints(0, -1), np.int32(1)), {}, "indices[1] = -1 is not in [0, 3)"),
        ((X, np.array([[0], [5]], np.int32), np.int32(1)), {"batch_dims": 1}, "indices[1,0] = 5 is not in [0, 3)"),
        ((X, ints(0, 1), np.int32(2)), {}, "Shape must be at least rank 3 but is rank 2"),
        (
            (X, ints(0, 1, 2), np.int32(1)),
            {"batch_dims": 1},
            "params.shape[0]: 2 should be equal to indices.shape[0]: 3",
        ),
        ((X, ints(0), np.int32(1)), {"batch_dims": 2}, "Expected batch_dims in the range [-1, 1], but got 2"),
        ((X, ints(0, 1), np.int32(0)), {"batch_dims": 1}, "batch_dims (1) must be less than or equal to axis (0)."),
        ((X[:0], ints(0), np.int32(0)), {}, "indices[0] = 0 is not in [0, 0)"),
        ((X[0, 0], ints(0), np.int32(0)), {}, "params must be at least 1 dimensional"),
    ],
)
def test_gathering_outside_is_refused(inputs: Any, attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        run("GatherV2", *inputs, **attrs)
    assert caught.value.message == message


@given(arrays(least=1, smallest=1), st.data())
def test_gather_nd_picks_what_the_tuples_name(x: Array, data: st.DataObject) -> None:
    indices = data.draw(index_tuples(x))
    actual = check_shapes("GatherNd", x, indices)
    assert actual.shape == (*indices.shape[:-1], *x.shape[indices.shape[-1] :])
    for place in np.ndindex(*indices.shape[:-1]):
        assert same(actual[(*place, ...)], x[(*indices[place], ...)])


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_can_be_gathered_and_updated(dtype: Any) -> None:
    x = filled((4, 2), dtype, 3)
    indices = np.array([[3], [0]], np.int32)
    rows = check_shapes("GatherNd", x, indices)
    assert same(rows, x[[3, 0]])
    assert same(check_shapes("TensorScatterUpdate", x, indices, rows), x)


def test_bad_tuples_are_refused_or_left_out() -> None:
    bad = np.array([[3], [1]], np.int32)
    updates = np.array([1, 5], np.float32)
    with pytest.raises(InvalidArgumentError, match=r"indices\[0\] = \[3\] does not index into shape \[3\]"):
        run("ScatterNd", bad, updates, ints(3))
    ignored = run("ScatterNd", bad, updates, ints(3), bad_indices_policy="IGNORE")
    assert ignored.tolist() == [0, 5, 0]
    with pytest.raises(InvalidArgumentError, match=r"indices\[0\] = \[3\] does not index into param shape \[2,3\]"):
        run("GatherNd", X, bad)
    assert run("GatherNd", X[:, 0], bad, bad_indices_policy="IGNORE").tolist() == [0, 3]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            ("ScatterNd", np.zeros((1, 1), np.int32), np.ones(2, np.float32), ints(3)),
            "Dimensions [0,1) of indices[shape=[1,1]] must match dimensions [0,1) of updates[shape=[2]]",
        ),
        (
            ("ScatterNd", np.zeros((1, 1), np.int32), np.ones(1, np.float32), ints(0)),
            "Indices and updates specified for empty output.  indices shape: [1,1]",
        ),
        (
            ("TensorScatterAdd", X, np.zeros((1, 1), np.int32), np.ones((1, 2), np.float32)),
            "The inner 1 dimensions of output.shape=[2,3] must match the inner 1 dimensions of updates.shape=[1,2]",
        ),
        (
            ("TensorScatterMax", X, ints(1), np.float32(2)),
            "Updates shape must have rank at least one. Found:[]",
        ),
    ],
)
def test_slices_that_do_not_fit_are_refused(call: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        run(*call)
    assert caught.value.message == message


@given(shapes_of(most=2), st.integers(0, 4), st.sampled_from(DTYPES), st.integers(-1, 2))
def test_one_hot_rows_have_one_value_where_the_index_says(shape: Any, depth: int, dtype: Any, axis: int) -> None:
    if axis > len(shape):
        return
    indices = np.random.default_rng(1).integers(-1, 6, shape)
    on, off = filled((2,), dtype, 4)[0, ...], filled((2,), dtype, 7)[1, ...]
    actual = check_shapes("OneHot", indices, np.int32(depth), on, off, axis=axis)
    rows = np.moveaxis(actual, axis, -1)
    for place in np.ndindex(*shape):
        expected = [on.item() if i == indices[place] else off.item() for i in range(depth)]
        assert rows[place].tolist() == expected


def test_one_hot_refuses_a_negative_depth_and_a_far_axis() -> None:
    one, zero = np.float32(1), np.float32(0)
    with pytest.raises(InvalidArgumentError, match="depth must be non-negative, got: -3"):
        run("OneHot", ints(0), np.int32(-3), one, zero)
    with pytest.raises(InvalidArgumentError, match="Expected axis to be -1 or between"):
        run("OneHot", ints(0), np.int32(3), one, zero, axis=4)


def test_shapes_with_unknown_axes_and_depths() -> None:
    assert shapes("GatherV2", (2, 3, 4), (5,), ()) == [(None, None, None)]
    assert shapes("GatherV2", (2, 3), (None, 5), np.int32(1)) == [(2, None, 5)]
    assert shapes("GatherNd", (2, 3), (None, 1)) == [(None, 3)]
    assert shapes("GatherNd", (2, 3), (4, None)) == [None]
    assert shapes("OneHot", (None, 2), (), (), (), axis=0) == [(None, None, 2)]
    assert shapes("ScatterNd", (1, 1), (1, 4), (2,)) == [(None, None)]


def test_strings_are_gathered_whole() -> None:
    assert run("GatherV2", texts(b"a\0", b"b"), np.int32(0), np.int32(0)).item() == b"a\0"
