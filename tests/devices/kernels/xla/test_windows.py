"""Windows are reduced cell by cell, and scatter to what they select. The values are those of TensorFlow's compiler."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array
from tests.devices.kernels.harness import shapes
from tests.devices.kernels.xla.computed import Body, binary, run_with, slowly

WAYS = [lambda body: body, slowly]


async def reduced(x: Array, initial: float, body: Body, *settings: list[int] | list[list[int]]) -> Array:
    kinds = list(map(np.array, settings))
    (got,) = await run_with("XlaReduceWindow", x, x.dtype.type(initial), *kinds, computation=body)
    return got


def expected_sums(x: Array, initial: int, settings: list[list[int]], padding: list[list[int]]) -> Array:
    """By the definition: dilate and pad, then add the elements of each window that come from `x`."""
    window, strides, spreads, dilations = map(np.array, settings)
    lengths = (np.array(x.shape) - 1) * spreads + 1 + np.sum(padding, 1)
    wide = np.zeros(lengths, x.dtype)
    for place in np.ndindex(x.shape):
        target = np.array(place) * spreads + np.array(padding)[:, 0]
        if ((target >= 0) & (target < lengths)).all():
            wide[tuple(target)] = x[place]
    counts = np.maximum((lengths - (window - 1) * dilations - 1) // strides + 1, 0)
    result = np.full(counts, initial, x.dtype)
    for at in np.ndindex(*counts):
        cells = product(*map(range, window))
        result[at] += sum(wide[tuple(np.array(at) * strides + np.array(cell) * dilations)] for cell in cells)
    return result


@settings(max_examples=20)
@given(st.integers(0, 999), st.sampled_from([binary("AddV2"), slowly(binary("AddV2"))]))
async def test_sums_of_windows(seed: int, body: Body) -> None:
    """With any strides, dilations and padding, also a negative one."""
    rng = np.random.default_rng(seed)
    x = rng.integers(1, 9, rng.integers(1, 5, 2), dtype=np.int32)
    kinds = [rng.integers(1, 3, 2).tolist() for _ in range(4)]
    padding = np.maximum(rng.integers(-1, 3, (2, 2)), 0 if min(x.shape) < 3 else -1).tolist()
    got = await reduced(x, 7, body, *kinds, padding)
    np.testing.assert_array_equal(got, expected_sums(x, 7, kinds, padding))


@pytest.mark.parametrize("way", WAYS)
async def test_cells_are_combined_in_order(way: object) -> None:
    """The initial value first; padding and holes are left out, whatever it is."""
    assert callable(way)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    plain = [[1, 1]] * 3
    got = await reduced(x, 0, way(binary("Sub")), [2, 2], *plain, [[0, 0], [0, 0]])
    assert got.tolist() == [[-8, -12]]
    got = await reduced(x, 5, way(binary("AddV2")), [2, 2], *plain, [[1, 0], [0, 1]])
    assert got.tolist() == [[6, 8, 7], [13, 17, 12]]
    got = await reduced(x, 0, way(binary("AddV2")), [2, 2], [1, 2], [1, 2], [1, 2], [[1, -1], [0, 1]])
    assert got.tolist() == [[1, 3]]


@pytest.mark.parametrize("way", WAYS)
async def test_windows_scatter_to_what_they_select(way: object) -> None:
    """Elements for one place are combined in order; what no window selects keeps the initial value."""
    assert callable(way)
    x = np.array([[1, 5, 3, 3], [2, 5, 9, 0]], np.float32)
    half, window = np.float32(0.5), np.array([2, 2])
    source = np.arange(1, 9, dtype=np.float32).reshape(2, 4)
    (got,) = await run_with(
        "XlaSelectAndScatter", x, window, np.array([1, 1]), np.array([[1, 0], [0, 1]]), source, half,
        select=way(binary("GreaterEqual")), scatter=way(binary("AddV2")),
    )  # fmt: skip
    assert got.tolist() == [[0.5, 8.5, 3.5, 12.5], [0.5, 0.5, 13.5, 0.5]]
    (got,) = await run_with(
        "XlaSelectAndScatter", x, window, np.array([1, 2]), np.zeros((2, 2), np.int64), source[:1, :2], half,
        select=way(binary("Greater")), scatter=way(binary("Sub")),
    )  # fmt: skip
    assert got.tolist() == [[0.5, 0.5, 0.5, 0.5], [0.5, -0.5, -1.5, 0.5]]


async def test_what_is_refused() -> None:
    """A source of another shape than the windows, and windows without size."""
    x, ones = np.zeros((2, 4), np.float32), np.array([1, 1])
    with pytest.raises(InvalidArgumentError, match=r"source\(\[1,3\]\), window-reduced operand\(\[2,4\]\)"):
        await run_with(
            "XlaSelectAndScatter", x, ones, ones, np.zeros((2, 2), np.int64), x[:1, :3], np.float32(0),
            select=binary("Greater"), scatter=binary("AddV2"),
        )  # fmt: skip
    with pytest.raises(InvalidArgumentError, match=r"window_dimensions must be 2 positive numbers: \[0,1\]"):
        await reduced(x, 0, binary("AddV2"), [0, 1], [1, 1], [1, 1], [1, 1], [[0, 0], [0, 0]])


def test_only_the_rank_is_known_before_the_run() -> None:
    """As in TensorFlow."""
    assert shapes("XlaReduceWindow", (5, 3), (), *[(2,)] * 4, (2, 2), computation=None) == [(None, None)]
