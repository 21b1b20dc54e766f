"""Ops of two tensors equal those of the dense ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array
from tests.devices.kernels.harness import check_shapes, run
from tests.devices.kernels.sparse.sparse_tensors import INDICES, SHAPE, VALUES, dense_of, matrices, parts_of


@given(matrices(), st.integers(0, 99))
def test_the_greater_and_the_smaller_of_two(dense: Array, seed: int) -> None:
    """Elements that only one has are compared with zero."""
    other = np.random.default_rng(seed).permutation(dense.reshape(-1)).reshape(dense.shape) - 1
    for op, choose in (("SparseSparseMaximum", np.maximum), ("SparseSparseMinimum", np.minimum)):
        a, b = parts_of(dense), parts_of(other)
        indices, values = check_shapes(op, *a, *b)
        np.testing.assert_array_equal(dense_of((indices, values, a[2])), choose(dense, other))
        assert len(indices) == np.count_nonzero((dense != 0) | (other != 0))


@given(matrices())
def test_sums_with_a_dense_tensor(dense: Array) -> None:
    """As a dense tensor, or at the places of the sparse one alone."""
    parts = parts_of(dense)
    ramp = np.arange(dense.size, dtype=dense.dtype).reshape(dense.shape)
    np.testing.assert_array_equal(check_shapes("SparseTensorDenseAdd", *parts, ramp), dense + ramp)
    values = check_shapes("SparseDenseCwiseAdd", *parts, ramp[:1])
    np.testing.assert_array_equal(values, (dense + ramp[:1])[tuple(parts[0].T)])


def test_repeated_indices_are_added_up() -> None:
    """The dense tensor itself stays as it is."""
    dense = np.ones((2, 3), np.float32)
    found = run("SparseTensorDenseAdd", INDICES[[0, 0, 1]], VALUES, SHAPE, dense)
    assert found.tolist() == [[1, 4, 1], [4, 1, 1]]
    assert (dense == 1).all()


ONES = np.ones((2, 3), np.float32)
A = INDICES, VALUES, SHAPE


@pytest.mark.parametrize(
    ("op", "inputs", "message"),
    [
        ("SparseSparseMaximum", (*A, INDICES, VALUES, SHAPE + 1), "Operands' shapes do not match: got 2 and 3 for"),
        ("SparseSparseMinimum", (*A, INDICES[:, :1], VALUES, SHAPE[:1]), "same ranks; got shapes: 2 3 and 2"),
        ("SparseSparseMinimum", (*A, INDICES, VALUES[:2], SHAPE), r"indices \(3\) and values \(2\) do not match"),
        ("SparseTensorDenseAdd", (*A, ONES[0]), "Two operands have different ranks; received: 2 and 1"),
        ("SparseTensorDenseAdd", (*A, ONES[:, :2]), "Dimension 1 does not equal .*: sparse side 3 vs dense side 2"),
        ("SparseTensorDenseAdd", (INDICES + 1, VALUES, SHAPE, ONES), r"a_indices\(1,0\) = 2, dense tensor shape: 2 3"),
        ("SparseDenseCwiseAdd", (*A, ONES[:, :2]), r"incompatible shapes: \[2,3\] vs. \[2,2\]"),
    ],
)
def test_wrong_operands_are_refused(op: str, inputs: tuple[Any, ...], message: str) -> None:
    """In TensorFlow's words."""
    with pytest.raises(InvalidArgumentError, match=message):
        run(op, *inputs)
