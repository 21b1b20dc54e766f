"""Sorts by a function of the graph: every comparator gives the stable order that it defines."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from partita.errors import InvalidArgumentError
from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.dtypes import DataType
from tests.devices.kernels.harness import shapes
from tests.devices.kernels.xla.computed import Body, binary, run_with, slowly


def less_modulo_4(b: GraphBuilder, x: Sequence[Tensor]) -> list[Tensor]:
    """Compares remainders of the first array: no single operation, and many elements are equal."""
    return [b.op("Less", *[b.op("FloorMod", t, np.int32(4)) for t in x[:2]])[0]]


COMPARATORS: dict[str, tuple[Body, Callable[[int], int]]] = {
    "less": (binary("Less"), lambda v: v),
    "greater": (binary("Greater"), lambda v: -v),
    "turned": (binary("Less", 1, 0), lambda v: -v),
    "modulo": (less_modulo_4, lambda v: v % 4),
    "slow": (slowly(less_modulo_4), lambda v: v % 4),
}


@settings(max_examples=30)
@given(st.lists(st.integers(0, 9), max_size=9), st.sampled_from(sorted(COMPARATORS)))
async def test_pairs_are_sorted_by_key(keys: list[int], name: str) -> None:
    """Elements of one key keep their order, and the other array goes with the first."""
    body, key = COMPARATORS[name]
    x, y = np.array(keys, np.int32), np.arange(len(keys), dtype=np.int32)
    got = await run_with(
        "XlaVariadicSort", [x, y], np.int32(0), types=["int32"] * 4, comparator=body, is_stable=True
    )  # fmt: skip
    order = sorted(range(len(keys)), key=lambda i: key(keys[i]))
    assert [array.tolist() for array in got] == [[keys[i] for i in order], order]


@pytest.mark.parametrize("body", [binary("Greater"), slowly(binary("Greater"))])
async def test_any_axis(body: Body) -> None:
    """A negative one counts from the end."""
    x = np.array([[1, 5, 3, 3], [2, 5, 9, 0]], np.float32)
    (got,) = await run_with("XlaVariadicSort", [x], np.int32(0), comparator=body, is_stable=False)
    assert got.tolist() == [[2, 5, 9, 3], [1, 5, 3, 0]]
    (got,) = await run_with("XlaVariadicSort", [x], np.int32(-1), comparator=body, is_stable=False)
    assert got.tolist() == [[5, 3, 3, 1], [9, 5, 2, 0]]


async def test_an_axis_that_does_not_exist_is_refused() -> None:
    """The message names the shape."""
    with pytest.raises(InvalidArgumentError, match=r"no dimension 5 to sort in shape \[2\]"):
        await run_with("XlaVariadicSort", [np.zeros(2)], np.int32(5), comparator=binary("Less"), is_stable=False)


def test_shapes_stay() -> None:
    """Each output has the shape of its input."""
    attrs = {"T": [DataType.FLOAT] * 2, "comparator": None, "is_stable": False}
    assert shapes("XlaVariadicSort", [(5, None), (4, 2)], (), **attrs) == [(5, None), (4, 2)]
