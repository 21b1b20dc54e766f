"""Datasets of several datasets: their elements come in the order of a plain loop over lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from partita.errors import InvalidArgumentError
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import DataType
from partita.graph.protos import FunctionDef
from tests.devices.kernels.datasets.pipelines import INT64, Pipeline, all_of
from tests.function_defs import func_attr, function_of


def interleaved(lists: list[list[int]], cycle: int, block: int) -> list[int]:
    """Goes round `cycle` places, which open the lists in order, and takes `block` items at each."""
    waiting, places, items = list(lists), [None] * cycle, []
    queues: list[list[int] | None] = list(places)
    while waiting or any(queue is not None for queue in queues):
        for place in range(cycle):
            if queues[place] is None and waiting:
                queues[place] = list(waiting.pop(0))
            queue = queues[place]
            if queue is not None:
                items += queue[:block]
                ends, queues[place] = len(queue) < block, queue[block:]
                if ends:
                    queues[place] = None
    return items


@settings(max_examples=15)
@given(st.integers(0, 12), st.integers(1, 4), st.integers(1, 3), st.booleans())
async def test_an_interleaving_goes_round(stop: int, cycle: int, block: int, parallel: bool) -> None:
    """Like a loop over lists, in parallel or not."""
    p = Pipeline()
    numbers = [np.int64(cycle), np.int64(block), *([np.int64(min(2, cycle))] if parallel else [])]
    dataset = p.mapped(
        "ParallelInterleaveDatasetV2" if parallel else "InterleaveDataset", p.range(stop), "below", *numbers
    )
    assert await all_of(p.iterated(dataset)) == interleaved([list(range(x % 4)) for x in range(stop)], cycle, block)


async def test_interleaving_has_tensorflows_order() -> None:
    """TensorFlow 2.21 gives range(8).interleave(lambda x: range(x % 4), cycle_length=3, block_length=2) so."""
    p = Pipeline()
    dataset = p.mapped("InterleaveDataset", p.range(8), "below", np.int64(3), np.int64(2))
    assert await all_of(p.iterated(dataset)) == [0, 0, 1, 0, 1, 2, 0, 0, 1, 0, 1, 2]


async def test_the_old_parallel_interleaving_has_an_order_of_its_own() -> None:
    """TensorFlow 2.21 gives parallel_interleave(range, cycle_length=5, block_length=2) of range(4) so."""
    p = Pipeline()
    numbers = np.int64(5), np.int64(2), np.int64(10), np.int64(5)
    dataset = p.mapped("LegacyParallelInterleaveDatasetV2", p.range(4), "below", *numbers, deterministic=b"true")
    assert await all_of(p.iterated(dataset)) == [0, 0, 0, 1, 1, 2]


@settings(max_examples=5)
@given(st.integers(0, 12))
async def test_a_flat_map_is_a_nested_loop(stop: int) -> None:
    """One dataset after the other, empty ones included."""
    p = Pipeline()
    dataset = p.mapped("FlatMapDataset", p.range(stop), "below")
    assert await all_of(p.iterated(dataset)) == [y for x in range(stop) for y in range(x % 4)]


async def test_a_function_must_give_a_dataset() -> None:
    """Another result is an error."""
    p = Pipeline()
    with pytest.raises(InvalidArgumentError, match="Dataset object"):
        await all_of(p.iterated(p.mapped("FlatMapDataset", p.range(2), "triple")))


def batches(name: str) -> FunctionDef:
    """The dataset of a group, in batches of two."""
    b = GraphBuilder()
    key, group = b.placeholder("key", "int64", ()), b.placeholder("group", DataType.VARIANT, ())
    attrs = {"output_types": [INT64], "output_shapes": [(None,)]}
    batched = b.op("BatchDataset", group, np.int64(2), name="batched", attrs=attrs)
    b.op("Identity", key, name="unused")
    return function_of(name, b.graph_def(), ["key:0", "group:0"], [f"{batched.name}:0"])


async def test_groups_by_key_end_with_those_that_are_not_full() -> None:
    """TensorFlow 2.21 gives these batches of numbers with the same rest modulo three."""
    p = Pipeline()
    p.add_function("rest", lambda b, x: b.op("FloorMod", x[0], np.int64(3))[0])
    p.add_function("two", lambda b, x: b.op("Sub", np.int64(2), b.op("Sub", x[0], x[0]))[0])
    p.b.function(batches("batches"))
    functions: dict[str, Any] = {
        f"{name}_func": func_attr(f) for name, f in (("key", "rest"), ("reduce", "batches"), ("window_size", "two"))
    }
    captured: dict[str, Any] = {f"T{name}_other_arguments": [] for name in functions}
    dataset = p.op("GroupByWindowDataset", p.range(10), [], [], [], shapes=[(None,)], **functions, **captured)
    assert await all_of(p.iterated(dataset, (None,))) == [[0, 3], [1, 4], [2, 5], [6, 9], [7], [8]]


@pytest.mark.parametrize(("stops", "expected"), [(False, [0, 0, 1, 1, 2, 2, 3, 4]), (True, [0, 0, 1, 1, 2, 2])])
async def test_a_selector_chooses_among_datasets(stops: bool, expected: list[int]) -> None:
    """One that has ended is passed over, or ends the sequence."""
    p = Pipeline()
    p.add_function("bit", lambda b, x: b.op("FloorMod", x[0], np.int64(2))[0])
    selector = p.mapped("MapDataset", p.range(12), "bit")
    dataset = p.op("DirectedInterleaveDataset", selector, [p.range(3), p.range(5)], stop_on_empty_dataset=stops)
    assert await all_of(p.iterated(dataset)) == expected


async def test_a_selector_out_of_range_is_refused() -> None:
    """As in TensorFlow."""
    p = Pipeline()
    dataset = p.op("DirectedInterleaveDataset", p.range(3), [p.range(3)], stop_on_empty_dataset=False)
    with pytest.raises(InvalidArgumentError, match="Selector index out of range: 1 >= 1"):
        await all_of(p.iterated(dataset))
