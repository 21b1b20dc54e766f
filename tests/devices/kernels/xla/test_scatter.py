"""Scatters combine slices with those at start indices; slices that do not lie in the array are left out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array
from tests.devices.kernels.xla.computed import binary, run_with, slowly
from tests.devices.kernels.xla.test_slices import message

ROWS = {"f1": [1], "f2": [0], "f3": [0]}  # each update is a row, each index the number of a row
BODIES = {
    "add": binary("AddV2"),
    "subtract": binary("Sub"),
    "put": lambda b, x: [b.op("Identity", x[1])[0]],
    "slow": slowly(binary("Sub")),
}
FORMULAS = {
    "add": lambda old, new: old + new,
    "subtract": lambda old, new: old - new,
    "put": lambda old, new: new,
    "slow": lambda old, new: old - new,
}


def numbers(vector_axis: int, **fields: list[int]) -> bytes:
    """Dimension numbers with the axis of index vectors, field 4."""
    return message(**fields) + bytes([4 << 3, vector_axis])


async def scattered(x: Array, indices: Any, updates: Array, body: Any, dimension_numbers: bytes) -> Array:
    (got,) = await run_with(
        "XlaScatter", x, np.array(indices, np.int32), updates, update_computation=body,
        dimension_numbers=dimension_numbers, indices_are_sorted=False,
    )  # fmt: skip
    return got


@settings(max_examples=20)
@given(st.lists(st.integers(-1, 4), max_size=8), st.sampled_from(sorted(BODIES)))
async def test_rows_are_combined_in_order(rows: list[int], name: str) -> None:
    """Also several for one place; rows outside of the array are left out."""
    x = np.arange(12, dtype=np.int32).reshape(4, 3)
    updates = np.arange(3 * len(rows), dtype=np.int32).reshape(-1, 3) + 50
    got = await scattered(x, rows, updates, BODIES[name], numbers(1, **ROWS))
    expected = x.copy()
    for row, update in zip(rows, updates, strict=True):
        if 0 <= row < 4:
            expected[row] = FORMULAS[name](expected[row], update)
    np.testing.assert_array_equal(got, expected)


async def test_values_of_tensorflow() -> None:
    """Blocks at pairs of indices, where a block that reaches over the end is left out; and indices in batches."""
    x = np.zeros((4, 3), np.float32)
    blocks = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    got = await scattered(x, [[1, 1], [2, 2], [0, 1]], blocks, BODIES["add"], numbers(1, f1=[0, 1], f3=[0, 1]))
    assert got.tolist() == [[0, 2, 5], [0, 8, 14], [0, 6, 9], [0, 0, 0]]
    batched = numbers(1, f2=[1], f3=[1], f5=[0], f6=[0])
    got = await scattered(x, [[0], [2], [1], [1]], np.arange(1, 5, dtype=np.float32), BODIES["add"], batched)
    assert got.tolist() == [[1, 0, 0], [0, 0, 2], [0, 3, 0], [0, 4, 0]]


async def test_updates_must_fit() -> None:
    """Slices larger than the array are refused."""
    with pytest.raises(InvalidArgumentError, match=r"slices of shape \[1,4\] do not fit an operand of shape \[4,3\]"):
        await scattered(np.zeros((4, 3)), [0], np.zeros((1, 4)), BODIES["add"], numbers(1, **ROWS))
