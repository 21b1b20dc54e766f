"""Gradients of grouped products, against differences and against one product for each group."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partita.actors import open_session
from partita.graph import gradients
from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from tests.graph.gradients.numeric import check, normal

COUNTS = np.array([2, 0, 3], np.int32)
SHAPES: dict[bool, Any] = {False: (3, 4, 2), True: (3, 2, 4)}
"""of weights for rows of 4 that become rows of 2, by `transpose_b`"""


@pytest.mark.parametrize("turned", SHAPES)
async def test_gradients_are_right_to_any_order(turned: bool) -> None:
    """Of the product and of its gradients; a group without rows gets zeros."""
    await check(
        lambda b, x, w: b.op("Partita>GroupedMatMul", x, w, COUNTS, transpose_b=turned),
        normal(5, 4),
        normal(*SHAPES[turned]),
        twice=True,
    )


@pytest.mark.parametrize("turned", SHAPES)
async def test_gradients_of_the_weights_gradient_are_right(turned: bool) -> None:
    """As an op of its own, with shapes that are unknown before the run."""
    await check(
        lambda b, x, g: b.op("Partita>GroupedMatMulGrad", x, g, COUNTS, transpose_b=turned),
        normal(5, 4),
        normal(5, 2),
        twice=True,
        open_shapes=True,
    )


def loop(b: GraphBuilder, x: Tensor, weights: Tensor, turned: bool) -> Tensor:
    """The same by TensorFlow's ops: rows and matrices split, multiplied one by one, joined."""
    rows = b.op("SplitV", x, COUNTS, 0, num_split=3)
    matrices = b.op("Unpack", weights, num=3)
    products = [b.op("MatMul", rows[i], matrices[i], transpose_b=turned)[0] for i in range(3)]
    return b.op("ConcatV2", products, 0)[0]


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("turned", SHAPES)
async def test_values_and_gradients_are_those_of_single_products(turned: bool, dtype: str) -> None:
    """Up to rounding in the half types, whose sums TensorFlow's products round more often."""
    b = GraphBuilder()
    values = [normal(5, 4), normal(*SHAPES[turned])]
    x, w = (b.op("Cast", b.constant(value), DstT=dtype)[0] for value in values)
    fetches: list[str | None] = []
    for product in (b.op("Partita>GroupedMatMul", x, w, COUNTS, transpose_b=turned)[0], loop(b, x, w, turned)):
        loss = b.op("Sum", b.op("Sin", product), b.constant([0, 1]))[0]
        fetches += [product.name, *gradients(b, [loss], [x, w])]
    async with open_session(b.graph_def()) as session:
        found = [np.asarray(value, float) for value in await session.run([str(name) for name in fetches])]
    bound = {"float64": 1e-13, "float32": 1e-5, "float16": 5e-3, "bfloat16": 4e-2}[dtype]
    for ours, theirs in zip(found[:3], found[3:], strict=True):
        np.testing.assert_allclose(ours, theirs, bound, bound)


def test_gradients_keep_what_the_clock_assumes() -> None:
    """The attr `assumed_imbalance` stands for the same groups."""
    b = GraphBuilder()
    x, w = b.placeholder("x", "float32", (5, 4)), b.placeholder("w", "float32", (3, 4, 2))
    gradients(b, [b.op("Partita>GroupedMatMul", x, w, COUNTS, assumed_imbalance=1.5)[0]], [x, w])
    nodes = [node for node in b.graph().op_nodes() if node.op.startswith("Partita>")]
    assert [node.attrs["assumed_imbalance"] for node in nodes] == [1.5] * 3
