"""Gradients of tensor arrays and lists: each element gets the gradient of its copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.dtypes import Array, DataType
from partita.graph.gradients import gradients
from partita.graph.graphdef.importer import graph_def_to_graph
from tests.runs import fetched

X = np.arange(1.0, 13.0).reshape(6, 2)
WEIGHTS = np.arange(20.0, 32.0).reshape(6, 2)
FLOAT = {"element_dtype": DataType.DOUBLE}


async def gradient(build: Callable[[GraphBuilder, Tensor], Tensor]) -> tuple[Array, Array]:
    """The value of what is built of x, of shape (6, 2), and the gradient of its sum weighted with WEIGHTS."""
    builder = GraphBuilder()
    y = build(builder, builder.placeholder("x", DataType.DOUBLE, X.shape))
    builder.constant(WEIGHTS, name="weights")
    graph = builder.graph()
    (gradient_name,) = gradients(graph, [y.name], ["x:0"], ["weights:0"])
    assert gradient_name is not None
    value, back = await fetched(graph.to_graph_def(), [y.name, gradient_name], {"x:0": X})
    return value, back


def new_array(builder: GraphBuilder, size: int, **attrs: Any) -> tuple[Tensor, Tensor]:
    array, flow = builder.op("TensorArrayV3", np.int32(size), dtype=DataType.DOUBLE, **attrs)
    return array, flow


ORDER = np.array([2, 0, 1, 5, 4, 3], np.int32)
LENGTHS = np.array([1, 3, 2], np.int64)


async def test_scattered_rows_come_back_from_where_they_were_gathered() -> None:
    def build(b: GraphBuilder, x: Tensor) -> Tensor:
        array, flow = new_array(b, 6)
        flow = b.op("TensorArrayScatterV3", array, ORDER, x, flow)[0]
        return b.op("TensorArrayGatherV3", array, np.arange(6, dtype=np.int32), flow, dtype=DataType.DOUBLE)[0]

    value, back = await gradient(build)
    np.testing.assert_array_equal(value[ORDER], X)
    np.testing.assert_array_equal(back, WEIGHTS[ORDER])


async def test_split_rows_come_back_concatenated() -> None:
    def build(b: GraphBuilder, x: Tensor) -> Tensor:
        array, flow = new_array(b, 3)
        flow = b.op("TensorArraySplitV3", array, x * x, LENGTHS, flow)[0]
        return b.op("TensorArrayConcatV3", array, flow, dtype=DataType.DOUBLE)[0]

    value, back = await gradient(build)
    np.testing.assert_array_equal(value, X * X)
    np.testing.assert_array_equal(back, 2 * X * WEIGHTS)


async def test_an_element_that_is_read_several_times_gets_the_sum() -> None:
    def build(b: GraphBuilder, x: Tensor) -> Tensor:
        array, flow = new_array(b, 1, clear_after_read=False)
        flow = b.op("TensorArrayWriteV3", array, np.int32(0), x, flow)[0]
        first, second = (b.op("TensorArrayReadV3", array, np.int32(0), flow, dtype=DataType.DOUBLE) for _ in range(2))
        return first * second

    value, back = await gradient(build)
    np.testing.assert_array_equal(value, X * X)
    np.testing.assert_array_equal(back, 2 * X * WEIGHTS)


@pytest.mark.parametrize("version", ["", "V2"])
async def test_the_first_versions_have_the_same_gradients(version: str) -> None:
    """A scatter, a read and a write; graphs of a later producer may not have these ops."""
    builder = GraphBuilder()
    x, flow = builder.placeholder("x", DataType.DOUBLE, X.shape), builder.constant(np.float32(0))
    array, other = (
        builder.op(f"TensorArray{version}", np.int32(6), dtype=DataType.DOUBLE, name=name)[0] for name in ("a", "b")
    )
    flow = builder.op(f"TensorArrayScatter{version}", array, ORDER, x, flow)[0]
    row = builder.op(f"TensorArrayRead{version}", array, np.int32(1), flow, dtype=DataType.DOUBLE)[0]
    flow = builder.op(f"TensorArrayWrite{version}", other, np.int32(5), row * row, flow)[0]
    y = builder.op(f"TensorArrayRead{version}", other, np.int32(5), flow, dtype=DataType.DOUBLE)[0]
    graph_def = builder.graph_def()
    graph_def.versions.producer = 8
    graph = graph_def_to_graph(graph_def)
    (name,) = gradients(graph, [y.name], ["x:0"])
    assert name is not None
    value, back = await fetched(graph.to_graph_def(), [y.name, name], {"x:0": X})
    source = int(np.flatnonzero(ORDER == 1)[0])
    np.testing.assert_array_equal(value, X[source] ** 2)
    expected = np.zeros_like(X)
    expected[source] = 2 * X[source]
    np.testing.assert_array_equal(back, expected)


def stacked(b: GraphBuilder, tensors: Any) -> Tensor:
    return b.op("TensorListStack", tensors, np.array([2], np.int32), attrs=FLOAT)[0]


def listed(b: GraphBuilder, x: Tensor) -> Tensor:
    return b.op("TensorListFromTensor", x, np.array([2], np.int32))[0]


def item(b: GraphBuilder, tensors: Any, index: int) -> Tensor:
    return b.op("TensorListGetItem", tensors, np.int32(index), np.array([2], np.int32), attrs=FLOAT)[0]


async def test_stacked_lists_come_back_as_lists() -> None:
    value, back = await gradient(lambda b, x: stacked(b, listed(b, x * x)))
    np.testing.assert_array_equal(value, X * X)
    np.testing.assert_array_equal(back, 2 * X * WEIGHTS)


async def test_an_item_that_is_set_takes_the_gradient_of_the_one_it_replaces() -> None:
    def build(b: GraphBuilder, x: Tensor) -> Tensor:
        rows = listed(b, x)
        return stacked(b, b.op("TensorListSetItem", rows, np.int32(4), item(b, rows, 1)))

    value, back = await gradient(build)
    np.testing.assert_array_equal(value[4], X[1])
    expected = WEIGHTS.copy()
    expected[1] += expected[4]
    expected[4] = 0
    np.testing.assert_array_equal(back, expected)


async def test_what_is_pushed_and_popped_comes_back() -> None:
    def build(b: GraphBuilder, x: Tensor) -> Tensor:
        rows, last = b.op("TensorListPopBack", listed(b, x), np.array([2], np.int32), attrs=FLOAT)
        return stacked(b, b.op("TensorListPushBack", rows, last * item(b, rows, 0)))

    value, back = await gradient(build)
    np.testing.assert_array_equal(value[5], X[5] * X[0])
    expected = WEIGHTS.copy()
    expected[0] += WEIGHTS[5] * X[5]
    expected[5] = WEIGHTS[5] * X[0]
    np.testing.assert_array_equal(back, expected)


@pytest.mark.parametrize("op", ["TensorListScatterV2", "TensorListScatter", "TensorListScatterIntoExistingList"])
async def test_rows_scattered_into_a_list_are_gathered_from_its_gradient(op: str) -> None:
    def build(b: GraphBuilder, x: Tensor) -> Tensor:
        shape = np.array([2], np.int32)
        if op == "TensorListScatterIntoExistingList":
            return stacked(b, b.op(op, listed(b, x), x * x, ORDER))
        more = (np.int32(6),) if op == "TensorListScatterV2" else ()
        return stacked(b, b.op(op, x * x, ORDER, shape, *more))

    value, back = await gradient(build)
    np.testing.assert_array_equal(value[ORDER], X * X)
    np.testing.assert_array_equal(back, 2 * X * WEIGHTS[ORDER])


async def test_gathered_items_are_scattered_back() -> None:
    def build(b: GraphBuilder, x: Tensor) -> Tensor:
        return b.op("TensorListGather", listed(b, x), ORDER, np.array([2], np.int32), attrs=FLOAT)[0]

    value, back = await gradient(build)
    np.testing.assert_array_equal(value, X[ORDER])
    np.testing.assert_array_equal(back[ORDER], WEIGHTS)


async def test_lists_of_pieces_come_back_concatenated() -> None:
    def build(b: GraphBuilder, x: Tensor) -> Tensor:
        shape = np.array([-1, 2], np.int32)
        pieces = b.op("TensorListSplit", x * x, shape, LENGTHS)
        return b.op("TensorListConcatV2", pieces, shape, np.array([], np.int64), attrs=FLOAT)[0]

    value, back = await gradient(build)
    np.testing.assert_array_equal(value, X * X)
    np.testing.assert_array_equal(back, 2 * X * WEIGHTS)


async def test_a_list_made_shorter_gets_zeros_for_what_was_cut_off() -> None:
    def build(b: GraphBuilder, x: Tensor) -> Tensor:
        shorter = b.op("TensorListResize", listed(b, x), np.int32(4))
        return stacked(b, b.op("TensorListResize", shorter, np.int32(6)))

    value, back = await gradient(build)
    np.testing.assert_array_equal(value[:4], X[:4])
    np.testing.assert_array_equal(back, np.concatenate([WEIGHTS[:4], np.zeros((2, 2))]))
