"""Gradients of the cross entropy over parts of the classes, against differences and against TensorFlow's ops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partita.actors import open_session
from partita.graph import gradients
from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.dtypes import DataType
from tests.graph.gradients.numeric import check, normal

LABELS = np.array([1, 5, -1, 3, 2], np.int32)
DOUBLE: dict[str, Any] = {"U": DataType.DOUBLE}


@pytest.mark.parametrize("classes_end", [0, 6])
async def test_gradients_are_right_to_any_order(classes_end: int) -> None:
    """Of classes 2 to 6 in a larger vocabulary: labels before, in and behind them, one of none, one class padded."""
    labels = np.minimum(LABELS, (classes_end or 99) - 1)
    await check(
        lambda b, x: b.op("Partita>SoftmaxCrossEntropy", x, labels, 2, classes_end=classes_end, **DOUBLE),
        normal(5, 5),
        twice=True,
    )


async def test_gradients_of_the_gradient_are_right() -> None:
    """By logits, logsumexp and both slopes, as an op of its own."""
    await check(
        lambda b, x, *rows: b.op("Partita>SoftmaxCrossEntropyGrad", x, LABELS, 2, *rows, **DOUBLE),
        normal(5, 4),
        *(normal(5, seed=seed) for seed in range(3)),
    )


def joined_loss(b: GraphBuilder, logits: Tensor, cut: int) -> Tensor:
    """Losses of rows whose classes are on two shards."""
    parts = [b.op("Slice", logits, [0, first], [-1, size])[0] for first, size in ((0, cut), (cut, 6 - cut))]
    outputs = [
        b.op("Partita>SoftmaxCrossEntropy", part, b.constant(LABELS), first, U=_statistics(logits))
        for part, first in zip(parts, (0, cut), strict=True)
    ]
    both = b.op("Pack", [output[0] for output in outputs], axis=1)
    greatest = b.op("StopGradient", b.op("Max", both, b.constant([1]), keep_dims=True))[0]
    totals = b.op("Sum", b.op("Exp", both[0] - greatest), b.constant([1]))
    logsumexp = b.op("Log", totals)[0] + b.op("Squeeze", greatest, squeeze_dims=[1])[0]
    return logsumexp - outputs[0][1] - outputs[1][1]


def _statistics(logits: Tensor) -> DataType:
    return DataType.DOUBLE if logits.dtype is DataType.DOUBLE else DataType.FLOAT


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("cut", [2, 5])
async def test_the_joined_loss_is_that_of_tensorflows_op(dtype: str, cut: int) -> None:
    """Values and gradients of SparseSoftmaxCrossEntropyWithLogits in float64, of rows that have a label."""
    b = GraphBuilder()
    values = normal(5, 6) * 3
    x = b.op("Cast", b.constant(values), DstT=dtype)[0]
    wide = b.op("Cast", x, DstT="float64")[0]
    present = b.constant((LABELS >= 0).astype(float))
    loss = b.op("Cast", joined_loss(b, x, cut), DstT="float64")[0] * present
    labels = b.constant(np.maximum(LABELS, 0))
    theirs = b.op("SparseSoftmaxCrossEntropyWithLogits", wide, labels)[0] * present
    fetches = [loss.name, *gradients(b, [loss], [x]), theirs.name, *gradients(b, [theirs], [wide])]
    async with open_session(b.graph_def()) as session:
        found = [np.asarray(value, float) for value in await session.run([str(name) for name in fetches])]
    bound = {"float64": 1e-13, "float32": 1e-5, "float16": 2e-3, "bfloat16": 1e-2}[dtype]
    np.testing.assert_allclose(found[0], found[2], 1e-13 if dtype == "float64" else 1e-5, 1e-6)
    np.testing.assert_allclose(found[1], found[3], bound, bound)
