"""Scans, segment reductions and counts agree with the plain loops that define them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import DataType
from tests.devices.kernels.draws import COMPLEX_TYPES, FLOAT_TYPES, INTEGER_TYPES, filled, tolerance
from tests.devices.kernels.harness import check_shapes, run, shapes

NUMBERS = [*FLOAT_TYPES, *COMPLEX_TYPES, *INTEGER_TYPES]
REALS = [*FLOAT_TYPES, *INTEGER_TYPES]
COMBINE = {"Sum": np.add, "Prod": np.multiply, "Min": np.minimum, "Max": np.maximum}
IDS = st.lists(st.integers(-2, 4), max_size=8)


@given(st.sampled_from(NUMBERS), st.integers(0, 99), st.integers(-2, 1), st.booleans(), st.booleans())
def test_scans_are_running_totals(dtype: np.dtype[Any], seed: int, axis: int, exclusive: bool, reverse: bool) -> None:
    """Inclusive from the front is numpy's; reverse flips before and after, exclusive leaves out the element itself."""
    x = filled(dtype, (3, 4), seed, 1, 2)
    for op, ufunc in (("Cumsum", np.add), ("Cumprod", np.multiply)):
        total = check_shapes(op, x, np.int32(axis), exclusive=exclusive, reverse=reverse)
        towards = np.flip(x, axis) if reverse else x
        inclusive = ufunc.accumulate(towards, axis, dtype)
        total = np.flip(total, axis) if reverse else total
        if exclusive:
            total = ufunc(total, towards)
        rtol = tolerance(dtype) * 4
        np.testing.assert_allclose(total.astype(np.complex128), inclusive.astype(np.complex128), rtol=rtol)


@given(st.sampled_from(FLOAT_TYPES), st.integers(0, 99))
def test_log_sum_exp_is_the_logarithm_of_the_scan_of_exponentials(dtype: np.dtype[Any], seed: int) -> None:
    """Exclusive scans begin with the logarithm of nothing."""
    x = filled(dtype, (5,), seed)
    rtol = tolerance(dtype) * 4
    exact = np.log(np.cumsum(np.exp(x.astype(np.float64))))
    np.testing.assert_allclose(check_shapes("CumulativeLogsumexp", x, np.int32(0)).astype(float), exact, rtol, rtol)
    assert run("CumulativeLogsumexp", x, np.int32(0), exclusive=True)[0] == -np.inf


def test_a_scan_wants_one_axis_that_exists() -> None:
    """A scalar, in range."""
    with pytest.raises(InvalidArgumentError, match=r"Expected scan axis in the range \[-1, 1\), but got 1"):
        run("Cumsum", np.ones(3), np.int32(1))
    with pytest.raises(InvalidArgumentError, match="axis must be a scalar"):
        run("Cumsum", np.ones(3), np.array([0]))
    assert run("Cumsum", np.zeros((0, 3)), np.int32(0), exclusive=True).shape == (0, 3)


@pytest.mark.parametrize("kind", COMBINE)
@given(ids=IDS, dtype=st.sampled_from(REALS), seed=st.integers(0, 99))
def test_unsorted_segments_are_loops(kind: str, ids: list[int], dtype: np.dtype[Any], seed: int) -> None:
    """Row after row into its segment; negative numbers drop the row."""
    data = filled(dtype, (len(ids), 2), seed)
    result = check_shapes(f"UnsortedSegment{kind}", data, np.array(ids, np.int32), np.int32(5))
    limits = np.iinfo(dtype) if dtype in INTEGER_TYPES else None
    for segment in range(5):
        rows = data[[i == segment for i in ids]] if ids else data
        if len(rows):
            expected = COMBINE[kind].reduce(rows, 0, dtype)
            rtol = tolerance(dtype) * 10
            np.testing.assert_allclose(
                result[segment].astype(np.float64), expected.astype(np.float64), rtol=rtol, atol=rtol
            )
        elif limits is not None:
            empty = {"Sum": 0, "Prod": 1, "Min": limits.max, "Max": limits.min}[kind]
            assert result[segment].tolist() == [empty] * 2


@pytest.mark.parametrize("kind", [*COMBINE, "Mean"])
@given(ids=IDS, dtype=st.sampled_from(REALS), seed=st.integers(0, 99))
def test_sorted_segments_are_unsorted_ones(kind: str, ids: list[int], dtype: np.dtype[Any], seed: int) -> None:
    """With zeros in the gaps (ones for products) and as many rows as the last number says; a mean divides by counts."""
    numbers = np.array(sorted(abs(i) for i in ids), np.int64)
    data = filled(dtype, (len(numbers), 2), seed)
    result = check_shapes(f"Segment{kind}", data, numbers)
    rows = int(numbers[-1]) + 1 if len(numbers) else 0
    assert result.shape == (rows, 2)
    counts = np.bincount(numbers, minlength=rows)
    whole = run(f"UnsortedSegment{'Sum' if kind == 'Mean' else kind}", data, numbers, np.int32(rows))
    if kind == "Mean":
        divided = whole.astype(np.float64) / np.maximum(counts, 1)[:, None]
        whole = (np.trunc(divided) if dtype in INTEGER_TYPES else divided).astype(dtype)
    whole[counts == 0] = 1 if kind == "Prod" else 0
    rtol = tolerance(dtype)
    np.testing.assert_allclose(result.astype(np.float64), whole.astype(np.float64), rtol=rtol, atol=rtol)


def test_segment_numbers_may_have_several_axes() -> None:
    """The data's shape begins with theirs."""
    ids = np.array([[1, 2], [0, 0]])
    assert check_shapes("UnsortedSegmentSum", np.ones((2, 2, 3)), ids, np.int32(3))[:, 0].tolist() == [2, 1, 1]
    assert shapes("UnsortedSegmentSum", (None, 2, 3), (4, 2), ()) == [(None, 3)]
    with pytest.raises(InvalidArgumentError, match="Dimensions must be equal"):
        shapes("UnsortedSegmentSum", (5, 3), (4,), ())


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([1, 0, 3], "segment ids are not increasing"),
        ([-1, 0, 3], r"Segment id -1 out of range \[0, 4\), possibly because 'segment_ids' input is not sorted"),
        ([0, 3], "segment_ids should be the same size as dimension 0 of input"),
        ([[0, 1, 3]], "segment_ids should be a vector"),
    ],
)
def test_bad_segment_numbers(ids: list[int] | list[list[int]], message: str) -> None:
    """Each with its own message."""
    with pytest.raises(InvalidArgumentError, match=message):
        run("SegmentSum", np.ones(3, np.float32), np.array(ids, np.int32))


@pytest.mark.parametrize(
    ("ids", "count", "message"),
    [
        ([1, 3, 1], 3, r"segment_ids\[1\] = 3 is out of range \[0, 3\)"),
        ([1, 1], 3, r"data.shape = \[3\] does not start with segment_ids.shape = \[2\]"),
        ([1, 1, 1], -3, "num_segments == -3 must not be negative"),
    ],
)
def test_bad_unsorted_segments(ids: list[int], count: int, message: str) -> None:
    """Each with its own message."""
    with pytest.raises(InvalidArgumentError, match=message):
        run("UnsortedSegmentSum", np.ones(3), np.array(ids), np.int32(count))


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
    """Negative values or sizes, weights that do not fit, too many axes."""
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
    """Each with its own message."""
    with pytest.raises(InvalidArgumentError, match=message):
        run("HistogramFixedWidth", np.array(values, np.float32), np.array(limits, np.float32), np.int32(bins))
