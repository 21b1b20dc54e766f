"""Ragged ranges are Python's; a ragged tensor made dense keeps its rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from tests.devices.kernels.harness import check_shapes, run

NUMBERS = st.integers(-9, 9)
STEPS = NUMBERS.filter(bool)
ROWS = st.lists(st.lists(NUMBERS, max_size=4), max_size=4)


@given(st.lists(st.tuples(NUMBERS, NUMBERS, STEPS), max_size=4))
def test_ragged_ranges_are_ranges(bounds: list[tuple[int, int, int]]) -> None:
    """One row per triple; a range in the wrong direction is empty."""
    starts, limits, steps = (
        np.array(column, np.int32) for column in (zip(*bounds, strict=True) if bounds else [()] * 3)
    )
    splits, values = check_shapes("RaggedRange", starts, limits, steps)
    rows = [list(range(*triple)) for triple in bounds]
    assert splits.tolist() == np.cumsum([0, *map(len, rows)]).tolist()
    assert values.tolist() == [value for row in rows for value in row]


def test_scalars_serve_all_ranges() -> None:
    """And floats are counted as Range counts them."""
    one, three = np.int32(1), np.array([3, 4], np.int32)
    assert check_shapes("RaggedRange", np.int32(0), three, one)[0].tolist() == [0, 3, 7]
    starts, limits, step = np.array([0, 1], np.float32), np.array([1, 2.5], np.float32), np.float32(0.25)
    assert run("RaggedRange", starts, limits, step)[0].tolist() == [0, 4, 10]
    with pytest.raises(InvalidArgumentError, match="Requires delta != 0"):
        run("RaggedRange", one, three, np.int32(0))
    with pytest.raises(InvalidArgumentError, match="must have the same shape"):
        run("RaggedRange", np.zeros(3, np.int32), three, one)
    with pytest.raises(InvalidArgumentError, match="starts must be a scalar or vector"):
        run("RaggedRange", np.zeros((1, 1), np.int32), three, one)


@given(ROWS, st.integers(-1, 5), st.integers(-1, 5), st.booleans())
def test_rows_are_cut_or_filled(rows: list[list[int]], height: int, width: int, by_splits: bool) -> None:
    """For both kinds of partition."""
    values = np.array([value for row in rows for value in row], np.int32)
    lengths = [len(row) for row in rows]
    splits, ids = np.cumsum([0, *lengths]), np.repeat(np.arange(len(rows)), lengths)
    partitions = [splits] if by_splits else [np.array(len(rows)), ids.astype(np.int64)]
    kinds = ["ROW_SPLITS"] if by_splits else ["FIRST_DIM_SIZE", "VALUE_ROWIDS"]
    kinds_attr = [kind.encode() for kind in kinds]
    shape = np.array([height, width], np.int64)
    actual = check_shapes(
        "RaggedTensorToTensor", shape, values, np.int32(7), partitions, row_partition_types=tuple(kinds_attr)
    )
    height = len(rows) if height < 0 else height
    width = max(lengths, default=0) if width < 0 else width
    padded = [(row + [7] * width)[:width] for row in rows] + [[7] * width] * height
    assert actual.tolist() == padded[:height]


def test_nested_rows() -> None:
    """Two levels of rows, and values that are vectors."""
    splits = [np.array([0, 2, 3]), np.array([0, 1, 3, 5])]
    attrs: dict[str, Any] = {"row_partition_types": (b"ROW_SPLITS", b"ROW_SPLITS")}
    x = run("RaggedTensorToTensor", np.array([-1, 2, -1]), np.arange(1, 6), np.int64(0), splits, **attrs)
    assert x.tolist() == [[[1, 0], [2, 3]], [[4, 5], [0, 0]]]
    pairs = np.arange(6).reshape(3, 2)
    attrs = {"row_partition_types": (b"ROW_SPLITS",)}
    x = check_shapes(
        "RaggedTensorToTensor", np.array([-1, -1, 2]), pairs, np.array([7, 8]), [np.array([0, 2, 3])], **attrs
    )
    assert x.tolist() == [[[0, 1], [2, 3]], [[4, 5], [7, 8]]]


def test_what_does_not_fit_is_refused() -> None:
    """Descending splits, and shapes of another rank."""
    attrs: dict[str, Any] = {"row_partition_types": (b"ROW_SPLITS",)}
    values, zero = np.arange(3), np.int64(0)
    with pytest.raises(InvalidArgumentError, match="Invalid row split size"):
        run("RaggedTensorToTensor", np.array([-1, -1]), values, zero, [np.array([0, 2, 1, 3])], **attrs)
    with pytest.raises(InvalidArgumentError, match=r"rank = 2 but shape\.rank = 1"):
        run("RaggedTensorToTensor", np.array([-1]), values, zero, [np.array([0, 3])], **attrs)
