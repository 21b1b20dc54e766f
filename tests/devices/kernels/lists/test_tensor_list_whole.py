"""Ops on all elements of a list at once undo each other."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from tests.devices.kernels.harness import run
from tests.devices.kernels.lists.list_tensors import FLOAT, PAIR, ROWS, UNKNOWN, reserved, stacked


@given(st.lists(st.integers(0, 3), max_size=4))
def test_what_is_split_is_concatenated(lengths: list[int]) -> None:
    """Concatenating the parts, or stacking the rows, gives the tensor back."""
    rows = np.arange(2.0 * sum(lengths), dtype=np.float32).reshape(-1, 2)
    parts = run("TensorListSplit", rows, np.array([-1, 2], np.int32), np.array(lengths, np.int64))
    joined, actual_lengths = run("TensorListConcatV2", parts, UNKNOWN, np.zeros(0, np.int64), element_dtype=FLOAT)
    np.testing.assert_array_equal(joined, rows)
    assert actual_lengths.tolist() == lengths
    np.testing.assert_array_equal(stacked(run("TensorListFromTensor", rows, PAIR)), rows)


@given(st.permutations(range(3)))
def test_what_is_scattered_is_gathered(order: list[int]) -> None:
    """Elements are scattered to a new list and into an existing one."""
    places = np.array(order, np.int32)
    for value in (
        run("TensorListScatter", ROWS, places, PAIR),
        run("TensorListScatterV2", ROWS, places, PAIR, np.int32(5)),
        run("TensorListScatterIntoExistingList", reserved(1), ROWS, places),
    ):
        np.testing.assert_array_equal(run("TensorListGather", value, places, UNKNOWN, element_dtype=FLOAT), ROWS)
