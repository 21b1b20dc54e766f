"""Gradients through loops and conditionals, nested in any way, are the derivatives of what the graph computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError, UnimplementedError
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import Array
from partita.graph.gradients import gradients
from partita.graph.graph import Graph
from tests.graph.gradients.programs import (
    NUM_VARIABLES,
    If,
    Statement,
    Step,
    While,
    derivatives,
    graph,
    programs,
    value,
)
from tests.runs import fetched

XS = [f"x{number}:0" for number in range(NUM_VARIABLES)]


async def graph_gradients(built: Graph, feeds: dict[str, Any]) -> list[Array]:
    """The gradients of y, zeros where there is none."""
    grads = gradients(built, ["y:0"], XS)
    names = [name for name in grads if name is not None]
    values = dict(zip(names, await fetched(built.to_graph_def(), names, feeds), strict=True))
    return [np.zeros_like(feeds[x]) if name is None else values[name] for x, name in zip(XS, grads, strict=True)]


@given(programs, st.integers(0, 2**32 - 1), st.booleans())
async def test_gradients_are_the_derivatives(program: tuple[Statement, ...], seed: int, even: bool) -> None:
    inputs = list(np.random.default_rng(seed).uniform(-1, 1, (NUM_VARIABLES, 2)))
    feeds = {**dict(zip(XS, inputs, strict=True)), "even:0": np.bool_(even)}
    actual = await graph_gradients(graph(program, (2,)).graph(), feeds)
    for ours, theirs in zip(actual, derivatives(lambda at: value(program, at, even), inputs), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def test_what_never_changes_is_not_pushed() -> None:
    built = graph([While(3, (Step("Mul", 0, 0, NUM_VARIABLES + 1),))], (2,)).graph()
    gradients(built, ["y:0"], [XS[0]])
    pushed = {node.input_edge(1).src.op for node in built.op_nodes() if node.op == "StackPushV2"}
    assert pushed <= {"Shape"}


async def test_a_second_call_does_not_disturb_the_first() -> None:
    program = (While(3, (If((Step("Mul", 0, 0, 1),), (Step("Mul", 1, 0, 1),)),)),)
    inputs = [np.array([0.5, -2.0]), np.array([3.0, 0.25]), np.array([1.0, 1.0])]
    feeds: dict[str, Any] = {**dict(zip(XS, inputs, strict=True)), "even:0": np.bool_(True)}
    built = graph(program, (2,)).graph()
    first, second = ([name for name in gradients(built, ["y:0"], XS) if name is not None] for _ in range(2))
    values = await fetched(built.to_graph_def(), first + second, feeds)
    np.testing.assert_array_equal(values[: len(first)], values[len(first) :])


def test_tensors_inside_of_loops_are_refused() -> None:
    built = graph([While(3, (Step("Mul", 0, 0, 1),))], (2,)).graph()
    inside = next(node.name for node in built.op_nodes() if node.op == "Merge")
    with pytest.raises(InvalidArgumentError, match="inside of a loop"):
        gradients(built, [f"{inside}:0"], XS)


def test_loops_of_another_form_are_refused() -> None:
    builder = GraphBuilder()
    x = builder.placeholder("x", "float64", ())
    builder.op("Exit", builder.op("Enter", x, frame_name="loop"), name="y")
    with pytest.raises(UnimplementedError, match="no LoopCond"):
        gradients(builder.graph(), ["y:0"], ["x:0"])


async def test_conditionals_are_differentiated_twice() -> None:
    built = graph([If((Step("Mul", 0, 0, 0), Step("Mul", 0, 0, 0)), ())], (2,)).graph()
    (first,) = gradients(built, ["y:0"], XS[:1])
    assert first is not None
    (second,) = gradients(built, [first], XS[:1])
    assert second is not None
    x, other = np.array([3.0, -1.0]), np.zeros(2)
    for even, true in ((True, 12 * x**2 / 8), (False, np.zeros(2))):
        feeds: dict[str, Any] = {**dict(zip(XS, [x, other, other], strict=True)), "even:0": np.bool_(even)}
        (actual,) = await fetched(built.to_graph_def(), [second], feeds)
        np.testing.assert_allclose(actual, true)
