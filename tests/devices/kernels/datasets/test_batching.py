"""Batches, windows and rows: elements that are several, or parts, of others."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from partita.errors import DataLossError, InvalidArgumentError
from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.dtypes import DataType
from tests.devices.kernels.datasets.pipelines import INT64, Pipeline, all_of
from tests.function_defs import func_attr, function_of

BATCHES = ("BatchDataset", "BatchDatasetV2", "ParallelBatchDataset", "MapAndBatchDataset")


def batched(p: Pipeline, op: str, dataset: Tensor, size: int, *, drops: bool) -> Tensor:
    count, flag = np.int64(size), np.bool_(drops)
    if op == "BatchDataset":
        return p.op(op, dataset, count, shapes=[(None,)])
    if op == "MapAndBatchDataset":
        return p.mapped(op, dataset, "same", count, np.int64(2), flag, shapes=[(None,)])
    return p.op(op, dataset, count, *([np.int64(2)] if op.startswith("Parallel") else []), flag, shapes=[(None,)])


@settings(max_examples=15)
@given(st.sampled_from(BATCHES), st.integers(0, 9), st.integers(1, 5), st.booleans())
async def test_batches_are_neighbours(op: str, stop: int, size: int, drops: bool) -> None:
    """The last one is smaller, or dropped."""
    p = Pipeline()
    p.add_function("same", lambda b, x: b.op("Identity", x[0])[0])
    rows = [list(range(first, min(first + size, stop))) for first in range(0, stop, size)]
    if drops and op != "BatchDataset":
        rows = [row for row in rows if len(row) == size]
    assert await all_of(p.iterated(batched(p, op, p.range(stop), size, drops=drops), (None,))) == rows


def filled(p: Pipeline, stop: int) -> Tensor:
    """For x = 0, 1, ... a vector of x times x."""
    b = GraphBuilder()
    x = b.placeholder("x", "int64", ())
    b.op("Fill", b.op("Reshape", x, np.array([1], np.int32)), x, name="filled", index_type=INT64)
    p.b.function(function_of("filled", b.graph_def(), ["x:0"], ["filled:0"]))
    return p.op("MapDataset", p.range(stop), [], shapes=[(None,)], f=func_attr("filled"), Targuments=[])


async def test_padded_batches_are_as_long_as_the_longest() -> None:
    """Or as long as the shape says; the rest has the given value."""
    for length, expected in ((-1, [[9, 9], [1, 9]]), (3, [[9, 9, 9], [1, 9, 9]])):
        p = Pipeline()
        inputs = [np.array([length], np.int64)], [np.int64(9)], np.bool_(True)
        attrs: dict[str, Any] = {"Toutput_types": [INT64], "output_shapes": [(None, None)], "N": 1}
        padded = p.b.op("PaddedBatchDatasetV2", filled(p, 5), np.int64(2), *inputs, attrs=attrs)[0]
        first, second = await all_of(p.iterated(padded, (None, None)))
        assert first == ([[9], [1]] if length < 0 else expected)
        assert second == ([[2, 2, 9], [3, 3, 3]])


async def test_what_does_not_fit_in_a_batch_is_refused() -> None:
    """Different shapes, and padding to less than an element."""
    p = Pipeline()
    with pytest.raises(InvalidArgumentError, match="Cannot batch tensors with different shapes in component 0"):
        await all_of(p.iterated(p.op("BatchDataset", filled(p, 3), np.int64(2), shapes=[(None, None)]), None))
    p = Pipeline()
    attrs: dict[str, Any] = {"Toutput_types": [INT64], "output_shapes": [(None, 1)], "N": 1}
    inputs = [np.array([1], np.int64)], [np.int64(0)]
    with pytest.raises(DataLossError, match="Attempted to pad to a smaller size than the input element"):
        await all_of(p.iterated(p.b.op("PaddedBatchDataset", filled(p, 3), np.int64(3), *inputs, attrs=attrs)[0], None))


@settings(max_examples=15)
@given(st.integers(0, 9), st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), st.booleans())
async def test_windows_are_slices(stop: int, size: int, shift: int, stride: int, drops: bool) -> None:
    """Of `size` elements, `stride` apart, one every `shift` elements."""
    p = Pipeline()
    b = GraphBuilder()
    attrs = {"output_types": [INT64], "output_shapes": [(None,)]}
    b.op("BatchDataset", b.placeholder("w", "variant", ()), np.int64(99), name="batched", attrs=attrs)
    p.b.function(function_of("joined", b.graph_def(), ["w:0"], ["batched:0"]))
    numbers = [np.int64(n) for n in (size, shift, stride)]
    windows = p.op("WindowDataset", p.range(stop), *numbers, np.bool_(drops), types=[DataType.VARIANT])
    joined = p.mapped("FlatMapDataset", windows, "joined", shapes=[(None,)])
    expected = [list(range(stop))[first : first + (size - 1) * stride + 1 : stride] for first in range(0, stop, shift)]
    whole = [window for window in expected if len(window) == size or not drops]
    assert await all_of(p.iterated(joined, (None,))) == whole


@settings(max_examples=15)
@given(st.integers(0, 12), st.integers(1, 5), st.lists(st.integers(1, 4), min_size=1, max_size=3), st.booleans())
async def test_rebatched_rows_are_the_same(stop: int, size: int, sizes: list[int], drops: bool) -> None:
    """In batches of the given sizes, again and again."""
    p = Pipeline()
    rows = batched(p, "BatchDataset", p.range(stop), size, drops=False)
    dataset = p.op("RebatchDatasetV2", rows, np.array(sizes), np.bool_(drops), shapes=[(None,)])
    expected, first = [], 0
    for length in cycle(sizes):
        batch = list(range(stop))[first : first + length]
        if not batch or (drops and len(batch) < length):
            break
        expected.append(batch)
        first += length
    assert await all_of(p.iterated(dataset, (None,))) == expected


async def test_rows_of_unequal_components_are_refused() -> None:
    """The message is TensorFlow's."""
    p = Pipeline()
    attrs: dict[str, Any] = {"Toutput_types": [INT64, INT64], "output_shapes": [(3,), (2,)]}
    pair = p.b.op("TensorDataset", [np.zeros(3, np.int64), np.zeros(2, np.int64)], attrs=attrs)[0]
    rows = p.op("UnbatchDataset", pair, types=[INT64, INT64], shapes=[(), ()])
    with pytest.raises(InvalidArgumentError, match="Component 0 had size 3 but component 1 had size, 2"):
        await all_of(p.iterated(p.mapped("MapDataset", rows, "plus")))
