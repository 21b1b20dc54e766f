"""Flat positions become an index per axis."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from tests.devices.kernels.harness import check_shapes, run, shapes


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_positions_are_numpys(dims: list[int], data: st.DataObject) -> None:
    """One row per axis, also for a single position."""
    top = int(np.prod(dims)) - 1
    numbers = np.array(data.draw(st.lists(st.integers(0, top), min_size=1, max_size=5)), np.int64)
    sizes = np.array(dims, np.int64)
    np.testing.assert_array_equal(check_shapes("UnravelIndex", numbers, sizes), np.unravel_index(numbers, dims))
    single = check_shapes("UnravelIndex", numbers[0], sizes)
    np.testing.assert_array_equal(single, np.unravel_index(int(numbers[0]), dims))


def test_a_negative_position_rounds_to_zero() -> None:
    """TensorFlow 2.21 gives this."""
    actual = run("UnravelIndex", np.array([-1, -3], np.int32), np.array([5, 2, 1], np.int32))
    np.testing.assert_array_equal(actual, [[0, -1], [-1, -1], [0, 0]])


@pytest.mark.parametrize(
    ("numbers", "dims", "message"),
    [
        ([9], [3, 3], "index is out of bound as with dims"),
        ([1], [0, 3], "dims contains zero at index 0"),
        ([1], [3, -2], "Got dim = -2 at index 1"),
        ([1], [2**20, 2**20], r"integer overflow: \(1048576 1048576\)"),
        ([[1]], [3], r'scalar or vector, got "\[1,1\]"'),
        ([1], [[3]], r'only be 1-D, got "\[1,1\]"'),
        ([], [3], r"received empty tensor indices: Tensor<type: int32 shape: \[0\] values: >"),
    ],
)
def test_refusals(numbers: list[int], dims: list[int], message: str) -> None:
    """TensorFlow 2.21 has these words."""
    with pytest.raises(InvalidArgumentError, match=message):
        run("UnravelIndex", np.array(numbers, np.int32), np.array(dims, np.int32))


def test_shapes_of_unknown_inputs() -> None:
    """The rank is the number of axes."""
    assert shapes("UnravelIndex", None, (2,)) == [None]
    assert shapes("UnravelIndex", (None,), (None,)) == [(None, None)]
    assert shapes("UnravelIndex", (), (2,)) == [(2,)]
