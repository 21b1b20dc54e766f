"""Reductions of segments agree with the plain loops that define them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from tests.devices.kernels.draws import FLOAT_TYPES, INTEGER_TYPES, filled, tolerance
from tests.devices.kernels.harness import check_shapes, run, shapes

REALS = [*FLOAT_TYPES, *INTEGER_TYPES]
COMBINE = {"Sum": np.add, "Prod": np.multiply, "Min": np.minimum, "Max": np.maximum}
IDS = st.lists(st.integers(-2, 4), max_size=8)


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
    with pytest.raises(InvalidArgumentError, match="must be equal"):
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
    """Each error has its own message."""
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
    """Each error has its own message."""
    with pytest.raises(InvalidArgumentError, match=message):
        run("UnsortedSegmentSum", np.ones(3), np.array(ids), np.int32(count))


def test_unsorted_segments_are_summed_one_slice_after_the_other() -> None:
    """From zero, which decides the last bits and the sign of a zero; the values are TensorFlow 2.21's."""
    x, ids = np.array([1e8, 1, -1e8, 1, 3, -0.0], np.float32), np.array([0, 0, 0, 0, 2, 3], np.int32)
    pairs = np.stack([x, x[::-1]], axis=1)
    sums = run("UnsortedSegmentSum", x, ids, np.int32(5))
    assert sums.tolist() == [1, 0, 3, 0, 0]
    assert not np.signbit(sums).any()
    expected = [[1, -1e8], [0, 0], [3, 1], [0, 1e8], [0, 0]]
    assert run("UnsortedSegmentSum", pairs, ids, np.int32(5)).tolist() == expected


def test_an_unsorted_segment_of_infinities_begins_with_the_finite_extreme() -> None:
    """As in TensorFlow 2.21."""
    x, most = np.array([np.inf, -np.inf], np.float32), np.finfo(np.float32).max
    ids = np.array([0, 1], np.int32)
    assert run("UnsortedSegmentMin", x, ids, np.int32(2)).tolist() == [most, -np.inf]
    assert run("UnsortedSegmentMax", x, ids, np.int32(2)).tolist() == [np.inf, -most]
