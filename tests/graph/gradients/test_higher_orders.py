"""Gradients of gradients of loops: stacks become lists, and any order is the derivative of the order before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from partita.actors import open_session
from partita.errors import UnimplementedError
from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.gradients import gradients
from partita.graph.graph import Graph
from partita.graph.structured import while_loop
from tests.graph.gradients.programs import NUM_VARIABLES, Statement, Step, While, derivatives, graph, programs, value
from tests.runs import fetched

XS = [f"x{number}:0" for number in range(NUM_VARIABLES)]
US = [f"u{number}:0" for number in range(NUM_VARIABLES)]
STEP = 1e-6


@settings(max_examples=25)
@given(programs, st.integers(0, 2**32 - 1), st.booleans())
async def test_second_derivatives_are_those_of_the_first(program: tuple[Statement, ...], seed: int, even: bool) -> None:
    """In a random direction u: the gradient of u * gradient, and the difference of exact gradients at x + u, x - u."""
    draw = np.random.default_rng(seed)
    inputs, us = (list(draw.uniform(-1, 1, (NUM_VARIABLES, 2))) for _ in range(2))
    builder = graph(program, (2,))
    for name in US:
        builder.placeholder(name[:-2], "float64", (2,))
    built = builder.graph()
    first = gradients(built, ["y:0"], XS)
    ys = [(name, u) for name, u in zip(first, US, strict=True) if name is not None]
    if not ys:
        return
    second = gradients(built, [name for name, _ in ys], XS, grad_ys=[u for _, u in ys])
    names = [name for name in second if name is not None]
    feeds = {**dict(zip(XS + US, [*inputs, *us], strict=True)), "even:0": np.bool_(even)}
    fetches = names or ["y:0"]
    values = dict(zip(fetches, await fetched(built.to_graph_def(), fetches, feeds), strict=True))

    def exact(sign: float) -> list[Any]:
        moved = [x + sign * STEP * u for x, u in zip(inputs, us, strict=True)]
        return derivatives(lambda at: value(program, at, even), moved)

    for grad, above, below in zip(second, exact(1), exact(-1), strict=True):
        ours = np.zeros(2) if grad is None else values[grad]
        np.testing.assert_allclose(ours, (above - below) / (2 * STEP), rtol=1e-4, atol=1e-6)


def power(b: GraphBuilder, x: Tensor) -> Tensor:
    """x ** 3, by a loop that multiplies."""
    start = [b.constant(0), b.constant(1.0)]
    return while_loop(b, lambda i, _: b.op("Less", i, b.constant(3))[0], lambda i, y: (i + 1, y * x), start)[1]


def sines(b: GraphBuilder, x: Tensor) -> Tensor:
    """The sine of the sine of the sine of x."""

    def body(i: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return i + 1, b.op("Sin", y)[0]

    return while_loop(b, lambda i, _: b.op("Less", i, b.constant(3))[0], body, [b.constant(0), x])[1]


def nested(b: GraphBuilder, x: Tensor) -> Tensor:
    """y = sin(y * x * x), three times; an inner loop multiplies twice."""

    def body(i: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        start = [b.constant(0), y]
        product = while_loop(b, lambda j, _: b.op("Less", j, b.constant(2))[0], lambda j, z: (j + 1, z * x), start)[1]
        return i + 1, b.op("Sin", product)[0]

    return while_loop(b, lambda i, _: b.op("Less", i, b.constant(3))[0], body, [b.constant(0), b.constant(1.0)])[1]


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (power, [3.375, 6.75, 9.0, 6.0]),
        (sines, [0.7447198, 0.025606237, -0.36498612, 0.13965113]),
        (nested, [0.8003574, -2.2295039, -15.4911785, 153.29135]),
    ],
)
@pytest.mark.parametrize("devices", ["cpu:1", "cpu:2"])
async def test_three_orders_equal_those_of_tensorflow(
    build: Callable[[GraphBuilder, Tensor], Tensor], expected: list[float], devices: str
) -> None:
    """TensorFlow 2.21 gives these at x = 1.5, with control flow of its second generation."""
    builder = GraphBuilder()
    with builder.device("/device:CPU:0"):
        x = builder.placeholder("x", "float32", ())
    orders = [build(builder, x).name]
    built = builder.graph()
    for _ in range(3):
        (name,) = gradients(built, [orders[-1]], ["x:0"])
        assert name is not None
        orders.append(name)
    if devices != "cpu:1":
        spread(built)
    async with open_session(built, devices) as session:
        values = await session.run(orders, {"x": np.float32(1.5)})
    np.testing.assert_allclose(values, expected, rtol=2e-5)


def spread(built: Graph) -> None:
    """Puts sums and products on the second device, so that all loops are over both."""
    requested = built.requested_device_indices()
    second = built.intern_device("/device:CPU:1")
    for node in built.op_nodes():
        if node.op in ("Mul", "Sum", "Sin", "Cos"):
            requested[node.id] = second
    built.request_devices(requested)


def test_first_derivatives_keep_their_stacks() -> None:
    """They cost less; only what is differentiated again has lists."""
    built = graph([While(3, (Step("Mul", 0, 0, 0),))], (2,)).graph()
    (first, *_) = gradients(built, ["y:0"], XS)
    assert first is not None
    kinds = [node.op for node in built.op_nodes()]
    assert "StackPushV2" in kinds
    assert "TensorListPushBack" not in kinds
    gradients(built, ["y:0"], XS)
    assert "TensorListPushBack" not in [node.op for node in built.op_nodes()]
    gradients(built, [first], XS)
    assert "TensorListPushBack" in [node.op for node in built.op_nodes()]


def test_stacks_that_are_popped_twice_are_refused() -> None:
    """Gradients make no such stack."""
    built = graph([While(3, (Step("Mul", 0, 0, 0),))], (2,)).graph()
    (first, *_) = gradients(built, ["y:0"], XS)
    assert first is not None
    pop = next(node for node in built.op_nodes() if node.op == "StackPopV2" and node.attr("elem_type") not in (3, 9))
    again = built.add_node("again", "StackPopV2", {"elem_type": pop.attr("elem_type")})
    handle = pop.input_edge(0)
    built.add_edge(handle.src, handle.src_output, again, 0)
    with pytest.raises(UnimplementedError, match="whose stack has 2 StackPopV2 nodes"):
        gradients(built, [first], XS)


async def test_triggers_that_wait_for_stacks_alone_stay_in_their_frames() -> None:
    """As in graphs that TensorFlow has differentiated, whose triggers do not wait for the begin of the iteration."""
    builder = GraphBuilder()
    y = power(builder, builder.placeholder("x", "float32", ())).name
    built = builder.graph()
    (first,) = gradients(built, [y], ["x:0"])
    assert first is not None
    for trigger in [node for node in built.op_nodes() if node.op == "ControlTrigger"]:
        for edge in trigger.in_edges():
            if edge.src.op == "Identity":
                built.remove_edge(edge)
    (second,) = gradients(built, [first], ["x:0"])
    assert second is not None
    assert await fetched(built.to_graph_def(), [second], {"x": np.array(1.5, np.float32)}) == [9.0]
