"""Generators, reductions by key, and iterators that deal elements out to several devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partita.actors import open_session
from partita.errors import InvalidArgumentError, OutOfRangeError
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import DataType
from tests.devices.kernels.datasets.pipelines import INT64, Pipeline, all_of
from tests.function_defs import func_attr, function_of


async def test_a_generator_ends_when_its_function_is_out_of_range() -> None:
    """It gives the state and what is left in a closed queue; TensorFlow 2.21 gives the same."""
    p = Pipeline()
    form: dict[str, Any] = {"shapes": [()], "container": b"", "shared_name": b"q", "capacity": 9}
    queue = p.b.op("FIFOQueueV2", component_types=[INT64], attrs=form)[0]
    filled = p.b.op("QueueEnqueueManyV2", queue, [np.array([1, 2])])
    p.b.op("QueueCloseV2", queue, name="close", control=[filled])
    b = GraphBuilder()
    state, handle = b.placeholder("state", "int64", ()), b.placeholder("q", DataType.RESOURCE, ())
    b.op("AddV2", state, b.op("QueueDequeueV2", handle, component_types=[INT64])[0], name="sum")
    p.b.function(function_of("advance", b.graph_def(), ["state:0", "q:0"], ["sum:0"]))
    names = {"init_func": "triple", "next_func": "advance", "finalize_func": "triple"}
    attrs: dict[str, Any] = {name: func_attr(f) for name, f in names.items()}
    types: dict[str, Any] = {"Tinit_func_args": [INT64], "Tnext_func_args": [DataType.RESOURCE]}
    inputs: tuple[list[Any], ...] = [np.int64(2)], [queue], []
    dataset = p.op("GeneratorDataset", *inputs, Tfinalize_func_args=[], **attrs, **types)
    async with open_session(p.iterated(dataset), "cpu:1") as session:
        await session.run([], targets=["close", "init"])
        assert [int((await session.run("next"))[0]) for _ in range(2)] == [7, 8]
        for _ in range(2):
            with pytest.raises(OutOfRangeError, match="End of sequence"):
                await session.run("next")


async def test_a_reduction_by_key_has_one_element_for_each_key() -> None:
    """In the order of the keys, here of rests modulo three, whose sums begin at three times the key."""
    p = Pipeline()
    p.add_function("rest", lambda b, x: b.op("FloorMod", x[0], np.int64(3))[0])
    names = {"key_func": "rest", "init_func": "triple", "reduce_func": "plus", "finalize_func": "triple"}
    attrs: dict[str, Any] = {name: func_attr(f) for name, f in names.items()}
    types: dict[str, Any] = {f"T{name}_other_arguments": [] for name in names}
    dataset = p.op("GroupByReducerDataset", p.range(7), [], [], [], [], **attrs, **types)
    assert await all_of(p.iterated(dataset)) == [3 * (0 + 0 + 3 + 6), 3 * (3 + 1 + 4), 3 * (6 + 2 + 5)]


async def test_elements_are_dealt_out_in_turn() -> None:
    """Whichever shard asks first; a pull of an earlier incarnation is refused."""
    p = Pipeline()
    form: dict[str, Any] = {"output_types": [INT64], "output_shapes": [()]}
    named: dict[str, Any] = {"devices": [b"a", b"b"], "shared_name": b"m", "container": b""}
    handle = p.b.op("MultiDeviceIterator", attrs={**form, **named})[0]
    p.b.op("MultiDeviceIteratorInit", p.range(5), handle, np.int64(2), name="init")
    incarnation = p.b.placeholder("incarnation", "int64", ())
    for shard in (0, 1):
        pull = handle, np.int32(shard), incarnation
        p.b.op("MultiDeviceIteratorGetNextFromShard", *pull, name=f"shard{shard}", attrs=form)
    async with open_session(p.b.graph_def(), "cpu:1") as session:
        feeds = {"incarnation": (await session.run("init"))[0]}
        for shard, expected in ((1, 1), (1, 3), (0, 0), (0, 2), (0, 4)):
            assert await session.run(f"shard{shard}", feeds) == [expected]
        for shard in (0, 1):
            with pytest.raises(OutOfRangeError, match="End of sequence"):
                await session.run(f"shard{shard}", feeds)
        await session.run("init")
        with pytest.raises(InvalidArgumentError, match="Invalid incarnation id"):
            await session.run("shard0", feeds)
