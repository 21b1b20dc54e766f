"""Sobol sequences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array, DataType
from tests.devices.kernels.harness import check_shapes


def points(dim: int, count: int, skip: int = 0, dtype: DataType = DataType.FLOAT) -> Array:
    found: Array = check_shapes("SobolSample", *map(np.int32, (dim, count, skip)), dtype=dtype)
    return found


def test_the_points_are_tensorflows() -> None:
    """The first ones in three dimensions."""
    expected = [[0.5, 0.5, 0.5], [0.75, 0.25, 0.25], [0.25, 0.75, 0.75], [0.375, 0.375, 0.625], [0.875, 0.875, 0.125]]
    for dtype in (DataType.FLOAT, DataType.DOUBLE):
        assert points(3, 5, dtype=dtype).tolist() == expected


@given(st.integers(1, 5), st.integers(1, 6), st.integers(1, 6))
def test_what_is_skipped_changes_nothing(dim: int, skip: int, count: int) -> None:
    """The rest of the sequence is the same."""
    np.testing.assert_array_equal(points(dim, count, skip), points(dim, skip + count)[skip:])


@given(st.integers(1, 6), st.integers(1, 40))
def test_every_interval_has_one_point(bits: int, dim: int) -> None:
    """Of 2^bits equal intervals on each axis; zero, the point that is left out, is in the first one."""
    count = (1 << bits) - 1
    places = np.sort((points(dim, count) * (count + 1)).astype(int), axis=0)
    np.testing.assert_array_equal(places, np.repeat(np.arange(1, count + 1)[:, None], dim, axis=1))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 1, 0), "dim must be at least one"),
        ((5, 0, 0), "num_results must be at least one"),
        ((5, 3, -1), "skip must be non-negative"),
        ((2, 2**31 - 2, 5), r"num_results\+skip must be less than 2147483647"),
        ((30000, 1, 0), "dim must be at most 21201"),
    ],
)
def test_sizes_out_of_bounds_are_refused(arguments: tuple[int, int, int], message: str) -> None:
    """Most of them in TensorFlow's words."""
    with pytest.raises(InvalidArgumentError, match=message):
        points(*arguments)
