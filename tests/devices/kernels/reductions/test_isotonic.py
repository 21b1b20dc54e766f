"""The fit falls, keeps the sum of each run, and no falling sequence is nearer."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from partita.graph.dtypes import DataType
from tests.devices.kernels.harness import check_shapes


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=12))
def test_the_nearest_falling_sequence(row: list[int]) -> None:
    """By the min-max formula: the least, over starts, of the greatest mean of a stretch around an element."""
    x = np.array([row, row[::-1]], np.float64)
    fitted, runs = check_shapes("IsotonicRegression", x, output_dtype=DataType.DOUBLE)
    size = len(row)
    expected = [min(max(np.mean(row[a : b + 1]) for b in range(i, size)) for a in range(i + 1)) for i in range(size)]
    np.testing.assert_allclose(fitted[0], expected, atol=1e-12)
    assert (np.diff(fitted) <= 1e-12).all()
    assert (runs[:, 0] == 0).all()
    for run in np.unique(runs[0]):
        np.testing.assert_allclose(fitted[0][runs[0] == run], x[0][runs[0] == run].mean(), atol=1e-12)


def test_values_of_tensorflow() -> None:
    """Fits and runs that TensorFlow 2.21 gives."""
    fitted, runs = check_shapes("IsotonicRegression", np.array([3, 1, 2], np.float32))
    assert (fitted.tolist(), runs.tolist()) == ([3, 1.5, 1.5], [0, 1, 1])
