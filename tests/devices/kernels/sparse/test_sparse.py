"""Sparse tensors agree with the dense ones that they stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array
from tests.devices.kernels.harness import check_shapes, run, shapes
from tests.devices.kernels.random_arrays import filled, ints, same, texts
from tests.devices.kernels.sparse.sparse_tensors import INDICES, SHAPE, VALUES, dense_of, matrices, parts_of


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
    actual = check_shapes("SparseTensorDenseMatMul", *parts_of(dense), b, adjoint_a=adjoint_a, adjoint_b=adjoint_b)
    assert np.array_equal(actual, left @ right)


@given(matrices(), st.integers(0, 99))
def test_a_sparse_sum_is_the_dense_sum(dense: Array, seed: int) -> None:
    other = np.maximum(filled(dense.shape, np.float64, seed) - 4, 0)
    actual = check_shapes("SparseAdd", *parts_of(dense), *parts_of(other), np.float64(0))
    assert np.array_equal(dense_of(actual), dense + other)


@given(matrices(3), st.lists(st.integers(0, 2), unique=True), st.booleans())
def test_a_sum_along_axes_is_the_dense_one(dense: Array, axes: list[int], keep: bool) -> None:
    actual = check_shapes("SparseReduceSum", *parts_of(dense), ints(*axes), keep_dims=keep)
    assert np.array_equal(actual, dense.sum(axis=tuple(axes), keepdims=keep))


def test_softmax_shares_among_what_is_there() -> None:
    actual = check_shapes("SparseSoftmax", INDICES, VALUES, SHAPE)
    assert np.allclose(actual, [1, 1 / (1 + np.e), np.e / (1 + np.e)])


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
