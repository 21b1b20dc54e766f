"""First centers are rows of the points, far from each other, and those that TensorFlow draws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array
from tests.devices.kernels.harness import check_shapes, run

POINTS = np.array(
    [[1.8, 0.4], [1.0, 2.2], [1.9, -1.0], [1.0, -0.2], [-0.1, 0.4], [0.1, 1.5], [0.8, 0.1], [0.4, 0.3]], np.float32
)


def centers(points: Array, count: int, seed: int, retries: int) -> Array:
    """What the op draws."""
    result: Array = check_shapes(
        "KmeansPlusPlusInitialization", points, np.int64(count), np.int64(seed), np.int64(retries)
    )
    return result


@given(st.integers(1, 8), st.integers(-9, 9), st.integers(-1, 3))
def test_centers_are_different_points(count: int, seed: int, retries: int) -> None:
    """A drawn point has no distance to itself, so it is not drawn again."""
    drawn = centers(POINTS, count, seed, retries).tolist()
    assert len({tuple(row) for row in drawn}) == count
    assert all(row in POINTS.tolist() for row in drawn)


@pytest.mark.parametrize(
    ("seed", "retries", "rows"), [(3, 0, [7, 5, 2, 0]), (3, 1, [7, 1, 0, 2]), (11, -1, [6, 1, 2, 5])]
)
def test_the_draws_are_tensorflows(seed: int, retries: int, rows: list[int]) -> None:
    """Values from TensorFlow 2.21, without retries, with one and with the number it chooses."""
    np.testing.assert_array_equal(centers(POINTS, 4, seed, retries), POINTS[rows])


def test_the_last_point_is_drawn_once_no_other_is_left() -> None:
    """All distances are zero then."""
    np.testing.assert_array_equal(centers(np.array([[0], [0], [5]], np.float32), 3, 1, 2)[1:], [[5], [5]])


@pytest.mark.parametrize(
    ("distances", "seed", "state"),
    [
        ([1, 2, 3, 4, 5, 0, 1, 7, 2, 9], 7, 9),
        ([0, 0], 1, 0),
        ([0, 0, 0, 1, 0, 0, 0, 1, 0], 1, 7),
        ([1, np.nan, 2], 1, 2),
    ],
)
def test_the_chain_ends_where_tensorflows_does(distances: list[float], seed: int, state: int) -> None:
    """Values from TensorFlow 2.21; a candidate without distance is never taken."""
    assert check_shapes("KMC2ChainInitialization", np.array(distances, np.float32), np.int64(seed)) == state


@pytest.mark.parametrize(
    ("points", "count", "message"),
    [
        (POINTS[0], 1, "Input points should be a matrix."),
        (POINTS[:0], 1, "Expected points.rows() > 0."),
        (POINTS, 0, "Expected num_to_sample > 0."),
        (POINTS, 9, "Expected num_to_sample <= points.rows(). 9 vs 8."),
        (POINTS, [1], "Input num_to_sample should be a scalar."),
    ],
)
def test_bad_inputs_are_named(points: Array, count: int, message: str) -> None:
    """TensorFlow's messages."""
    with pytest.raises(InvalidArgumentError) as error:
        run("KmeansPlusPlusInitialization", points, np.array(count, np.int64), np.int64(1), np.int64(1))
    assert error.value.message == message
    with pytest.raises(InvalidArgumentError, match=r"Expected distances_tensor.size\(\) > 0."):
        run("KMC2ChainInitialization", np.zeros(0, np.float32), np.int64(0))
