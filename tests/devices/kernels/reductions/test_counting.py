"""Counts and histograms lose nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import DataType
from tests.devices.kernels.draws import NUMBERS, filled
from tests.devices.kernels.harness import check_shapes, run


@given(st.lists(st.integers(0, 6), max_size=10), st.sampled_from(NUMBERS), st.booleans())
def test_bincounts_count(values: list[int], dtype: np.dtype[Any], weighted: bool) -> None:
    """Occurrences or sums of weights; what lies past the last bin is dropped; rows of a matrix are counted apart."""
    array = np.array(values, np.int32)
    weights = filled(dtype, (len(values),), 1) if weighted else np.zeros(0, dtype)
    expected = np.zeros(5, dtype)
    for value, weight in zip(values, weights if weighted and values else np.ones(len(values), dtype), strict=True):
        if value < 5:
            expected[value] += weight
    for op in ("Bincount", "DenseBincount"):
        np.testing.assert_array_equal(check_shapes(op, array, np.int32(5), weights), expected)
    if values:
        both = check_shapes(
            "DenseBincount", np.stack([array, array]), np.int32(5), np.zeros(0, dtype), binary_output=True
        )
        np.testing.assert_array_equal(both, [[i in values for i in range(5)]] * 2)


def test_bad_counts() -> None:
    """Negative values or sizes, wrong weights, and too many axes are errors."""
    nothing, ones = np.zeros(0), np.ones(3, np.int32)
    for inputs, message in [
        ((np.array([1, -1], np.int32), np.int32(3), nothing), "must be non-negative!"),
        ((ones, np.int32(-3), nothing), r"size \(-3\) must be non-negative"),
        ((ones, np.int32(3), np.ones(2)), "the same s"),
    ]:
        for op in ("Bincount", "DenseBincount"):
            with pytest.raises(InvalidArgumentError, match=message):
                run(op, *inputs)
    with pytest.raises(InvalidArgumentError, match="at most rank 2 but is rank 3"):
        run("DenseBincount", np.zeros((1, 1, 1), np.int32), np.int32(3), nothing)


@given(st.lists(st.integers(-160, 160), max_size=20), st.integers(1, 7))
def test_a_histogram_loses_nothing(eighths: list[int], bins: int) -> None:
    """Every value is counted once; those inside the range where numpy counts them.

    Values are eighths: no bin edge is so near to one that rounding would decide.
    """
    values = [n / 8 for n in eighths]
    array, limits = np.array(values, np.float32), np.array([-5, 5], np.float32)
    counts = check_shapes("HistogramFixedWidth", array, limits, np.int32(bins), dtype=DataType.INT64)
    assert counts.sum() == len(values)
    np.testing.assert_array_equal(counts[1:-1], np.histogram(array.astype(float), bins, (-5, 5))[0][1:-1])


@pytest.mark.parametrize(
    ("values", "limits", "bins", "message"),
    [
        ([np.nan], [0, 5], 5, "must not contain NaN"),
        ([1], [5, 5], 5, r"value_range\[0\] < value_range\[1\], but got '\[5, 5\]'"),
        ([1], [0, 5], 0, "nbins should be a positive number, but got '0'"),
        ([1], [0, 5, 6], 2, "vector of 2 elements"),
    ],
)
def test_bad_histograms(values: list[float], limits: list[int], bins: int, message: str) -> None:
    """Each error has its own message."""
    with pytest.raises(InvalidArgumentError, match=message):
        run("HistogramFixedWidth", np.array(values, np.float32), np.array(limits, np.float32), np.int32(bins))
