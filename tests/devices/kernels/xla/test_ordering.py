"""Sorting is along the last axis, in a total order of all floats."""

from __future__ import annotations

import numpy as np
import pytest

from partita.errors import InvalidArgumentError
from tests.devices.kernels.harness import check_shapes, run


def test_the_total_order_of_floats() -> None:
    """The order that TensorFlow 2.21 gives: signed zeros and NaN have places."""
    x = np.array([3, np.nan, 0.0, -0.0, -np.nan, np.inf, -np.inf, 1], np.float32)
    got = check_shapes("XlaSort", x)
    np.testing.assert_array_equal(got, np.array([-np.nan, -np.inf, -0.0, 0.0, 1, 3, np.inf, np.nan], np.float32))
    assert np.signbit(got).tolist() == [True, True, True] + [False] * 5


def test_values_go_with_their_keys() -> None:
    """Row by row; those of equal keys stay in order."""
    keys, values = np.array([[3, 1, 2], [1, 0, 1]], np.int32), np.arange(6.0).reshape(2, 3)
    got = check_shapes("XlaKeyValueSort", keys, values)
    assert [part.tolist() for part in got] == [[[1, 2, 3], [0, 1, 1]], [[1, 2, 0], [4, 3, 5]]]
    with pytest.raises(InvalidArgumentError, match="a scalar has no dimension to sort"):
        run("XlaSort", np.array(5))
