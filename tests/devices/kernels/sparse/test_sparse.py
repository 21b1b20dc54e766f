"""Sparse tensors agree with the dense ones that they stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array
from tests.devices.kernels.harness import check_shapes, run, shapes
from tests.devices.kernels.random_arrays import filled, ints, same, shapes_of, texts

Parts = tuple[Array, Array, Array]
INDICES = np.array([[0, 1], [1, 0], [1, 2]])
VALUES = np.array([1, 2, 3], np.float32)
SHAPE = np.array([2, 3])


def parts_of(dense: Array) -> Parts:
    """The sparse tensor of what is not zero."""
    indices = np.argwhere(dense != 0)
    return indices, dense[tuple(indices.T)], np.array(dense.shape, np.int64)


def dense_of(parts: Parts) -> Array:
    """The dense array that a sparse tensor stands for."""
    indices, values, shape = parts
    made = np.zeros(shape.tolist(), values.dtype)
    made[tuple(indices.T)] = values
    return made


def matrices(rank: int = 2) -> st.SearchStrategy[Array]:
    """Dense arrays with zeros among their elements."""
    shape = shapes_of(rank, rank, smallest=1)
    return st.builds(lambda s, seed: np.maximum(filled(s, np.float64, seed) - 3, 0), shape, st.integers(0, 99))


@given(matrices(), st.booleans())
def test_a_sparse_tensor_spreads_out_to_the_dense_one(dense: Array, validate: bool) -> None:
    indices, values, shape = parts_of(dense)
    assert same(check_shapes("SparseToDense", indices, shape, values, np.float64(0), validate_indices=validate), dense)


def test_indices_may_be_numbers_and_the_default_anything() -> None:
    assert run("SparseToDense", np.int64(2), np.array([4]), np.float32(2), np.float32(-1)).tolist() == [-1, -1, 2, -1]
    assert run("SparseToDense", ints(1), ints(2), texts(b"a"), np.array(b"z", object)).tolist() == [b"z", b"a"]


@given(matrices(), st.integers(1, 3), st.booleans(), st.booleans())
def test_a_sparse_product_is_the_dense_product(dense: Array, columns: int, adjoint_a: bool, adjoint_b: bool) -> None:
    left = dense.T if adjoint_a else dense
    right = filled((left.shape[1], columns), np.float64, 1)
    b = np.ascontiguousarray(right.T) if adjoint_b else right
    made = check_shapes("SparseTensorDenseMatMul", *parts_of(dense), b, adjoint_a=adjoint_a, adjoint_b=adjoint_b)
    assert np.array_equal(made, left @ right)


@given(matrices(), st.integers(0, 99))
def test_a_sparse_sum_is_the_dense_sum(dense: Array, seed: int) -> None:
    other = np.maximum(filled(dense.shape, np.float64, seed) - 4, 0)
    made = check_shapes("SparseAdd", *parts_of(dense), *parts_of(other), np.float64(0))
    assert np.array_equal(dense_of(made), dense + other)


@given(matrices(3), st.randoms())
def test_reordering_and_reshaping_keep_the_dense_tensor(dense: Array, random: Any) -> None:
    indices, values, shape = parts_of(dense)
    order = list(range(values.size))
    random.shuffle(order)
    again = check_shapes("SparseReorder", indices[order], values[order], shape)
    assert same(again[0], indices)
    assert same(again[1], values)
    moved, new_shape = check_shapes("SparseReshape", indices, shape, np.array([dense.shape[0], -1]))
    assert np.array_equal(dense_of((moved, values, new_shape)), dense.reshape(dense.shape[0], -1))


@given(matrices(), st.data())
def test_slices_and_concatenations_are_those_of_dense_tensors(dense: Array, data: st.DataObject) -> None:
    start = np.array([data.draw(st.integers(0, n)) for n in dense.shape])
    size = np.array([data.draw(st.integers(0, 5)) for _ in dense.shape])
    box = tuple(slice(a, a + n) for a, n in zip(start.tolist(), size.tolist(), strict=True))
    parts = parts_of(dense)
    assert np.array_equal(dense_of(check_shapes("SparseSlice", *parts, start, size)), dense[box])
    axis = data.draw(st.integers(-2, 1))
    joined = check_shapes("SparseConcat", *([part, part] for part in parts), concat_dim=axis)
    assert np.array_equal(dense_of(joined), np.concatenate([dense, dense], axis))
    assert same(joined[0], parts_of(dense_of(joined))[0])


@given(matrices(3), st.lists(st.integers(0, 2), unique=True), st.booleans())
def test_a_sum_along_axes_is_the_dense_one(dense: Array, axes: list[int], keep: bool) -> None:
    made = check_shapes("SparseReduceSum", *parts_of(dense), ints(*axes), keep_dims=keep)
    assert np.array_equal(made, dense.sum(axis=tuple(axes), keepdims=keep))


def test_softmax_shares_among_what_is_there() -> None:
    made = check_shapes("SparseSoftmax", INDICES, VALUES, SHAPE)
    assert np.allclose(made, [1, 1 / (1 + np.e), np.e / (1 + np.e)])


@given(matrices())
def test_every_row_has_an_element_after_filling_and_old_ones_are_found_again(dense: Array) -> None:
    indices, values, shape = parts_of(dense)
    merged, new_values, empty, places = check_shapes("SparseFillEmptyRows", indices, values, shape, np.float64(9))
    assert set(merged[:, 0].tolist()) == set(range(dense.shape[0]))
    assert empty.tolist() == [not row.any() for row in dense]
    assert same(merged[places], indices)
    assert same(new_values[places], values)
    old, default = check_shapes("SparseFillEmptyRowsGrad", places, new_values)
    assert same(old, values)
    assert default == 9 * int(empty.sum())


@given(matrices(), st.integers(1, 4))
def test_splitting_cuts_the_dense_tensor(dense: Array, count: int) -> None:
    if count > dense.shape[1]:
        return
    pieces = check_shapes("SparseSplit", np.int64(1), *parts_of(dense), num_split=count)
    made = [dense_of((pieces[i], pieces[count + i], pieces[2 * count + i])) for i in range(count)]
    assert np.array_equal(np.concatenate(made, 1), dense)


@given(
    st.lists(st.integers(0, 3), max_size=6).map(sorted), st.integers(0, 9), st.sampled_from(["Sum", "Mean", "SqrtN"])
)
def test_sparse_segments_combine_picked_rows_and_gradients_give_them_back(
    segments: list[int], seed: int, kind: str
) -> None:
    data = filled((5, 2), np.float64, seed)
    picked = np.random.default_rng(seed).integers(0, 5, len(segments)).astype(np.int32)
    made = check_shapes(f"SparseSegment{kind}WithNumSegments", data, picked, ints(*segments), np.int32(4))
    weight = np.zeros((4, 5))
    np.add.at(weight, (ints(*segments), picked), 1.0)
    counts = np.maximum(weight.sum(1, keepdims=True), 1)
    weight /= {"Sum": np.ones_like(counts), "Mean": counts, "SqrtN": np.sqrt(counts)}[kind]
    assert np.allclose(made, weight @ data)
    rows = max(segments, default=-1) + 1
    assert same(check_shapes(f"SparseSegment{kind}", data, picked, ints(*segments)), made[:rows])
    grad = filled((4, 2), np.float64, 3)
    back = check_shapes(f"SparseSegment{kind}Grad", grad, picked, ints(*segments), np.int32(5))
    assert np.allclose(back, weight.T @ grad)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            ("SparseToDense", INDICES, np.array([2, 2]), VALUES, np.float32(0)),
            "indices[2] = [1,2] is out of bounds: need 0 <= index < [2,2]",
        ),
        (("SparseToDense", INDICES[[0, 0, 1]], SHAPE, VALUES, np.float32(0)), "indices[1] = [0,1] is repeated"),
        (
            ("SparseTensorDenseMatMul", INDICES + 5, VALUES, SHAPE, np.ones((3, 2), np.float32)),
            "k (6) from index[0,1] out of bounds (>=3)",
        ),
        (
            ("SparseAdd", INDICES, VALUES, SHAPE, INDICES, VALUES, np.array([2, 4]), np.float32(0)),
            "Operands' shapes do not match: got 3 and 4 for dimension 1",
        ),
        (
            ("SparseReshape", INDICES, SHAPE, np.array([7])),
            "Input to reshape is a tensor with 6 dense values, but the requested shape has 7. "
            "input_shape=[2,3] output_shape=[7]",
        ),
        (
            ("SparseReduceSum", INDICES, VALUES, SHAPE, ints(3)),
            "Invalid reduction dimension 3, for input with 2 dimensions.",
        ),
        (
            ("SparseFillEmptyRows", INDICES + 5, VALUES, SHAPE, np.float32(0)),
            "indices(0, 0) is invalid: 5 >= 2",
        ),
        (("SparseSegmentSum", VALUES, ints(0, 7), ints(0, 1)), "Bad: indices[1] == 7 out of range [0, 3)"),
        (("SparseSegmentSum", VALUES, ints(0, 1), ints(1, 0)), "segment ids are not increasing"),
    ],
)
def test_broken_sparse_tensors_are_refused_in_these_words(call: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        run(*call)
    assert caught.value.message == message


def test_shapes_of_sparse_results_leave_the_number_of_elements_open() -> None:
    assert shapes("SparseAdd", (3, 2), (3,), (2,), (1, 2), (1,), (2,), ()) == [(None, 2), (None,), (2,)]
    assert shapes("SparseToDense", (3, 2), (2,), (3,), ()) == [(None, None)]
    assert shapes("SparseSegmentSum", (5, 2), (3,), (3,)) == [(None, 2)]
