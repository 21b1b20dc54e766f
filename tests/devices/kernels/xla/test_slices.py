"""Slices that would leave the array are moved back into it; cells may be added at ends and in between, or dropped."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from tests.devices.kernels.harness import check_shapes, run, shapes


def message(**fields: list[int]) -> bytes:
    """Dimension numbers; `f1=[0, 2]` sets the numbers of field 1."""
    return b"".join(bytes([int(name[1:]) << 3 | 2, len(axes), *axes]) for name, axes in fields.items())


SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=3)


@given(SHAPES, st.integers(0, 99))
def test_what_was_written_is_read_back(sizes: list[int], seed: int) -> None:
    """At any start, also outside of the array; nothing else changes."""
    rng = np.random.default_rng(seed)
    x, starts = rng.normal(size=sizes), rng.integers(-5, 6, len(sizes))
    update = rng.normal(size=[rng.integers(1, size + 1) for size in sizes])
    written = check_shapes("XlaDynamicUpdateSlice", x, update, starts)
    read = check_shapes("XlaDynamicSlice", written, starts, np.array(update.shape))
    np.testing.assert_array_equal(read, update)
    assert (written != x).sum() == update.size


def test_starts_are_moved_into_the_array() -> None:
    """As far as necessary."""
    assert run("XlaDynamicSlice", np.arange(10), np.array([8]), np.array([4])).tolist() == [6, 7, 8, 9]
    assert run("XlaDynamicSlice", np.arange(10), np.array([-3]), np.array([2])).tolist() == [0, 1]


@given(SHAPES, st.integers(0, 99))
def test_padding_cell_by_cell(sizes: list[int], seed: int) -> None:
    """Cell i lands at low + i * (interior + 1), if that is inside."""
    rng = np.random.default_rng(seed)
    x = rng.integers(1, 99, sizes)
    low, high, interior = (rng.integers(least, 3, len(sizes)) for least in (-1, 0, 0))
    got = check_shapes("XlaPad", x, np.array(0), low, high, interior)
    expected = np.zeros(got.shape, np.int64)
    for place in product(*map(range, sizes)):
        target = low + np.array(place) * (interior + 1)
        if ((target >= 0) & (target < got.shape)).all():
            expected[tuple(target)] = x[place]
    np.testing.assert_array_equal(got, expected)


def test_more_cells_may_be_dropped_than_there_are() -> None:
    """At one end, if enough are added at the other; not fewer than none may be left."""
    one = np.array([1])
    assert run("XlaPad", np.arange(3), np.array(7), -5 * one, 4 * one, 0 * one).tolist() == [7, 7]
    with pytest.raises(InvalidArgumentError, match="resulting padded dimension has negative size -2"):
        run("XlaPad", np.arange(3), np.array(7), -5 * one, 0 * one, 0 * one)


def test_rows_are_gathered() -> None:
    """Starts are moved into the operand; an offset axis may come first."""
    x, starts = np.arange(12).reshape(4, 3), np.array([[3], [9], [-1]])
    rows = {"dimension_numbers": message(f1=[1], f2=[0], f3=[0]) + b"\x20\x01", "indices_are_sorted": False}
    got = check_shapes("XlaGather", x, starts, np.array([1, 2]), **rows)
    assert got.tolist() == [[9, 10], [9, 10], [0, 1]]
    rows["dimension_numbers"] = message(f1=[0], f2=[0], f3=[0]) + b"\x20\x01"
    assert check_shapes("XlaGather", x, starts, np.array([1, 2]), **rows).tolist() == got.T.tolist()
    assert shapes("XlaGather", (None, 3), (2, 1), np.array([1, 2]), **rows) == [None]


def test_gathers_in_batches() -> None:
    """A batching axis of the operand goes with one of the start indices."""
    x, starts = np.arange(12).reshape(3, 4), np.array([1, 0, 3])
    numbers = message(f3=[1], f5=[0], f6=[0], f2=[1]) + b"\x20\x01"
    got = run("XlaGather", x, starts, np.array([1, 1]), dimension_numbers=numbers, indices_are_sorted=False)
    assert got.tolist() == [1, 4, 11]
