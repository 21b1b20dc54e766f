"""Segments of rows that are picked by index."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.devices.kernels.harness import check_shapes
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
