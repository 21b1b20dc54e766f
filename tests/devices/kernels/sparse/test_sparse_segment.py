"""Segments of rows that are picked by index."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.devices.kernels.harness import check_shapes, run
from tests.devices.kernels.random_arrays import filled, ints, same


@given(
    st.lists(st.integers(0, 3), max_size=6).map(sorted), st.integers(0, 9), st.sampled_from(["Sum", "Mean", "SqrtN"])
)
def test_sparse_segments_combine_picked_rows_and_gradients_give_them_back(
    segments: list[int], seed: int, kind: str
) -> None:
    data = filled((5, 2), np.float64, seed)
    picked = np.random.default_rng(seed).integers(0, 5, len(segments)).astype(np.int32)
    actual = check_shapes(f"SparseSegment{kind}WithNumSegments", data, picked, ints(*segments), np.int32(4))
    weight = np.zeros((4, 5))
    np.add.at(weight, (ints(*segments), picked), 1.0)
    counts = np.maximum(weight.sum(1, keepdims=True), 1)
    weight /= {"Sum": np.ones_like(counts), "Mean": counts, "SqrtN": np.sqrt(counts)}[kind]
    assert np.allclose(actual, weight @ data)
    rows = max(segments, default=-1) + 1
    assert same(check_shapes(f"SparseSegment{kind}", data, picked, ints(*segments)), actual[:rows])
    grad = filled((4, 2), np.float64, 3)
    back = check_shapes(f"SparseSegment{kind}Grad", grad, picked, ints(*segments), np.int32(5))
    assert np.allclose(back, weight.T @ grad)


@pytest.mark.parametrize("kind", ["Sum", "Mean", "SqrtN"])
def test_gradients_of_the_used_rows(kind: str) -> None:
    """Version two gives the rows of version one that a segment has, and their numbers."""
    grad = np.array([[1.0, 2.0], [3.0, 4.0]])
    arguments = np.array([5, 2, 5], np.int32), np.array([0, 0, 1], np.int32), np.int32(8)
    rows, numbers = check_shapes(f"SparseSegment{kind}GradV2", grad, *arguments)
    assert numbers.tolist() == [2, 5]
    np.testing.assert_allclose(rows, run(f"SparseSegment{kind}Grad", grad, *arguments)[numbers])
