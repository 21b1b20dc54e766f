"""Conditionals, loops and calls of foreign code, as graphs for XLA have them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from partita.errors import InvalidArgumentError, NotFoundError
from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.dtypes import DataType
from tests.devices.kernels.harness import check_shapes, run
from tests.devices.kernels.xla.computed import run_with


def below_10(b: GraphBuilder, x: Sequence[Tensor]) -> list[Tensor]:
    return [b.op("Less", x[0], np.int32(10))[0]]


def plus_3(b: GraphBuilder, x: Sequence[Tensor]) -> list[Tensor]:
    return [b.op("AddV2", x[0], np.int32(3))[0]]


async def test_a_loop_runs_while_the_condition_holds() -> None:
    """Not even once if it never does."""
    for start, end in ((1, 10), (10, 10), (12, 12), (0, 12)):
        (got,) = await run_with("XlaWhile", [np.int32(start)], types=["int32"], cond=below_10, body=plus_3)
        assert got == end


async def test_a_conditional_calls_one_branch() -> None:
    """Any number that is not zero is true; a vector is no condition."""

    def minus_1(b: GraphBuilder, x: Sequence[Tensor]) -> list[Tensor]:
        return [b.op("Sub", x[0], np.int32(1))[0]]

    for condition, expected in ((np.bool_(True), 8), (np.bool_(False), 4), (np.int32(7), 8)):
        (got,) = await run_with(
            "XlaIf", condition, [np.int32(5)], types=["int32"], then_branch=plus_3, else_branch=minus_1,
            Tout=[DataType.INT32],
        )  # fmt: skip
        assert got == expected
    with pytest.raises(InvalidArgumentError, match=r"a condition must be a scalar, not of shape \[1\]"):
        await run_with(
            "XlaIf", np.ones(1, np.int32), [np.int32(5)], types=["int32"], then_branch=plus_3, else_branch=minus_1,
            Tout=[DataType.INT32],
        )  # fmt: skip


def test_there_is_one_replica() -> None:
    """Its number is 0."""
    assert check_shapes("XlaReplicaId") == 0


def test_custom_calls_are_refused_when_they_run() -> None:
    """As by TensorFlow where nobody has registered the code."""
    with pytest.raises(NotFoundError, match="No registered implementation for untyped custom call to mine for Host"):
        run("XlaCustomCall", [np.zeros(2)], target_name="mine", backend_config="", dtype=DataType.FLOAT, shape=(2,))
