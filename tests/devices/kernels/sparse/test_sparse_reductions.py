"""Reductions of sparse tensors equal those of the dense ones, where there is something to reduce."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InternalError, InvalidArgumentError
from partita.graph.dtypes import Array
from tests.devices.kernels.harness import check_shapes, run
from tests.devices.kernels.sparse.sparse_tensors import dense_of, matrices, parts_of


@given(matrices(), st.sampled_from([[0], [1], [-1], [0, 1], []]), st.booleans())
def test_dense_results(dense: Array, axes: list[int], keep: bool) -> None:
    """Elements that lack count as zero, and all others here are greater."""
    picked = np.array(axes, np.int32)
    for op, reduce in (("SparseReduceSum", np.sum), ("SparseReduceMax", np.max)):
        expected = reduce(dense, tuple(axes), keepdims=keep)
        np.testing.assert_allclose(check_shapes(op, *parts_of(dense), picked, keep_dims=keep), expected)


@given(matrices(), st.sampled_from([[0], [1], [-1]]), st.booleans())
def test_sparse_results_stand_for_the_dense_ones(dense: Array, axes: list[int], keep: bool) -> None:
    """In row-major order."""
    picked = np.array(axes, np.int32)
    for kind in ("Sum", "Max"):
        parts = check_shapes(f"SparseReduce{kind}Sparse", *parts_of(dense), picked, keep_dims=keep)
        expected = check_shapes(f"SparseReduce{kind}", *parts_of(dense), picked, keep_dims=keep)
        np.testing.assert_allclose(dense_of(parts), expected)
        assert (np.diff(parts[0].sum(axis=1)) > 0).all()


def test_the_greatest_of_negative_values() -> None:
    """Elements that lack do not count; a group without any is zero. TensorFlow 2.21 gives these."""
    parts = np.array([[0, 0], [0, 2]]), np.array([-3, -1], np.int32), np.array([2, 3])
    assert check_shapes("SparseReduceMax", *parts, np.array([1], np.int32)).tolist() == [-1, 0]


def test_wrong_axes_and_indices_are_refused() -> None:
    """In TensorFlow's words."""
    parts = np.array([[1, 0]]), np.ones(1, np.float32), np.array([1, 3])
    with pytest.raises(InvalidArgumentError, match=r"Invalid reduction dimension 2, for input with 2 dimensions."):
        run("SparseReduceMax", *parts, np.array([2], np.int32))
    with pytest.raises(InternalError, match=r"Obtained a write index of 1 which is outside of bounds of \[0, 1\)"):
        run("SparseReduceSum", *parts, np.array([1], np.int32))
