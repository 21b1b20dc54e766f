"""Reductions by a function of the graph are those of numpy, whether the function takes arrays or not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from partita.errors import InvalidArgumentError
from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.dtypes import DataType
from tests.devices.kernels.harness import shapes
from tests.devices.kernels.xla.computed import binary, run_with, slowly

SHAPES = st.lists(st.integers(0, 4), max_size=3)


def doubled_sum(b: GraphBuilder, x: Sequence[Tensor]) -> list[Tensor]:
    """A sum in two operations: the function is called with arrays."""
    return [b.op("Sub", x[0], b.op("Neg", x[1]))[0]]


def first_largest(b: GraphBuilder, x: Sequence[Tensor]) -> list[Tensor]:
    """The larger value, and its index; of equal ones those of the first arguments."""
    is_first = b.op("GreaterEqual", x[0], x[2])
    return [b.op("SelectV2", is_first, x[k], x[k + 2])[0] for k in (0, 1)]


@settings(max_examples=12)
@given(SHAPES, st.sampled_from([binary("AddV2"), doubled_sum, slowly(binary("AddV2"))]), st.data())
async def test_sums(sizes: list[int], body: object, data: st.DataObject) -> None:
    """Along any axes, the initial value added once."""
    axes = data.draw(st.lists(st.integers(0, max(len(sizes) - 1, 0)), unique=True, max_size=len(sizes)))
    x = np.random.default_rng(len(sizes)).integers(-9, 9, sizes, dtype=np.int32)
    (got,) = await run_with("XlaReduce", x, np.int32(5), reducer=body, dimensions_to_reduce=axes)
    np.testing.assert_array_equal(got, 5 + x.sum(tuple(axes)))
    (inferred,) = shapes("XlaReduce", x, np.int32(5), reducer=None, dimensions_to_reduce=axes)
    assert inferred == got.shape


async def test_sums_of_half_types_are_rounded_once() -> None:
    """A sum of float16 goes through float32: 2048 + 1 is no float16."""
    x = np.ones(3000, np.float16)
    (got,) = await run_with("XlaReduce", x, np.float16(0), reducer=binary("AddV2"), dimensions_to_reduce=[0])
    assert got == 3000


async def test_values_of_tensorflow() -> None:
    """A reducer of two operands, and one that picks the larger value with its index."""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)

    def sum_and_product(b: GraphBuilder, x: Sequence[Tensor]) -> list[Tensor]:
        return [b.op("AddV2", x[0], x[2])[0], b.op("Mul", x[1], x[3])[0]]

    zero, one = np.float32(0), np.float32(1)
    total, product = await run_with(
        "XlaVariadicReduce", [x, x + 1], [zero, one], types=["float32"] * 4, reducer=sum_and_product,
        dimensions_to_reduce=[1],
    )  # fmt: skip
    assert (total.tolist(), product.tolist()) == ([3, 12], [6, 120])
    largest, index = await run_with(
        "XlaVariadicReduceV2", [x, np.arange(6, dtype=np.int32).reshape(2, 3)], [np.float32(-1), np.int32(-1)],
        types=["float32", "int32"] * 2, reducer=first_largest, dimensions_to_reduce=[1],
    )  # fmt: skip
    assert (largest.tolist(), index.tolist()) == ([2, 5], [2, 5])


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12))
@settings(max_examples=12)
async def test_neighbours_keep_their_order(values: list[int]) -> None:
    """A function that is associative but not commutative: the first of the largest elements wins."""
    x, index = np.array(values, np.int32), np.arange(len(values), dtype=np.int32)
    largest, first = await run_with(
        "XlaVariadicReduceV2", [x, index], [np.int32(-1), np.int32(-1)], types=["int32"] * 4,
        reducer=first_largest, dimensions_to_reduce=[0],
    )  # fmt: skip
    assert (int(largest), int(first)) == (max(values), values.index(max(values)))


async def test_what_is_refused() -> None:
    """Axes that do not exist or come twice, and initial values that are no scalars."""
    x = np.zeros((2, 3), np.float32)
    for axes in ([2], [-1], [0, 0]):
        with pytest.raises(InvalidArgumentError, match="Invalid dimensions_to_reduce argument to XlaReduce"):
            await run_with("XlaReduce", x, np.float32(0), reducer=binary("AddV2"), dimensions_to_reduce=axes)
    with pytest.raises(InvalidArgumentError, match=r"init_value must be a scalar but got \[1\]"):
        await run_with("XlaReduce", x, x[0, :1], reducer=binary("AddV2"), dimensions_to_reduce=[0])


def test_shapes_of_several_arrays_are_merged() -> None:
    """What one of them knows holds for all."""
    settings = {"T": [DataType.FLOAT] * 2, "reducer": None, "dimensions_to_reduce": [1]}
    assert shapes("XlaVariadicReduceV2", [(None, 3), (4, None)], [(), ()], **settings) == [(4,), (4,)]
    assert shapes("XlaVariadicReduceV2", [None, None], [(), ()], **settings) == [None, None]
