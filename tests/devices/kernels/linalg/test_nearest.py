"""The nearest centers are those of all distances sorted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from tests.devices.kernels.harness import check_shapes, run


@given(st.integers(1, 5), st.integers(1, 6), st.integers(1, 8), st.integers(0, 99))
def test_nearest_of_all(points: int, centers: int, k: int, seed: int) -> None:
    """Nearest first; all of them if fewer than k."""
    rng = np.random.default_rng(seed)
    p, c = rng.normal(size=(points, 3)).astype(np.float32), rng.normal(size=(centers, 3)).astype(np.float32)
    numbers, squares = check_shapes("NearestNeighbors", p, c, np.int64(k))
    exact = ((p[:, None] - c) ** 2).sum(axis=2)
    assert numbers.shape == (points, min(k, centers))
    np.testing.assert_allclose(squares, np.sort(exact, axis=1)[:, :k], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(np.take_along_axis(exact, numbers, 1), squares, rtol=1e-3, atol=1e-4)


def test_columns_must_fit() -> None:
    """TensorFlow's message."""
    with pytest.raises(InvalidArgumentError, match="Expected point_dimensions == center_dimensions: 3 vs 2"):
        run("NearestNeighbors", np.ones((2, 3), np.float32), np.ones((2, 2), np.float32), np.int64(1))
