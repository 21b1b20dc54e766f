"""Shapes and slopes of GELU."""

from __future__ import annotations

import pytest

from partita.errors import NotFoundError
from partita.graph.builder import GraphBuilder
from partita.graph.gradients import gradients
from tests.devices.kernels.harness import shapes
from tests.graph.gradients.numeric import Example, example, normal

EXAMPLES: dict[str, Example] = {
    "exact": example(lambda b, x: b.op("Partita>Gelu", x), normal(3, 4)),
    "by tanh": example(lambda b, x: b.op("Partita>Gelu", x, approximate=True), normal(3, 4)),
}


@pytest.mark.parametrize("name", EXAMPLES)
async def test_slopes(name: str) -> None:
    """The gradients say what small steps of x do to the outputs."""
    await EXAMPLES[name].check()


def test_shapes_as_far_as_they_are_known() -> None:
    """That of x, and of both for the gradient."""
    assert shapes("Partita>Gelu", (2, None)) == [(2, None)]
    assert shapes("Partita>GeluGrad", (2, None), (None, 3)) == [(2, 3)]


def test_no_second_gradient() -> None:
    """The gradient of the gradient is refused by name."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (3, 4))
    y = b.op("Partita>Gelu", x)
    graph = b.graph()
    (once,) = gradients(graph, [y[0].name], [x.name])
    assert once is not None
    with pytest.raises(NotFoundError, match="Partita>GeluGrad"):
        gradients(graph, [once], [x.name])
