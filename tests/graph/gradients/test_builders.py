"""`gradients` of a graph that is still being written: the builder goes on from them."""

from __future__ import annotations

import numpy as np
import pytest

from partita.actors import open_session
from partita.errors import NotFoundError
from partita.graph import GraphBuilder, gradients, graph_def_to_graph
from tests.function_defs import func_attr, function_of


def line() -> GraphBuilder:
    """y = (w x - 2)^2 with a variable w."""
    b = GraphBuilder()
    w, x = b.variable("w", "float32", ()), b.placeholder("x", "float32", ())
    b.op("Square", b.op("Mul", w, x, name="wx")[0] - 2.0, name="y")
    b.op("Assign", w, 3.0, name="begin")
    return b


def test_a_builder_gets_the_gradients_of_its_graph() -> None:
    """The same nodes and names as the graph gets; functions and earlier handles stay."""
    b, graph = line(), line().graph()
    wx = b.operation("wx")
    assert gradients(b, "y", ["w", wx]) == gradients(graph, "y:0", ["w:0", "wx:0"])
    assert graph_def_to_graph(b.graph_def()).to_graph_def() == graph.to_graph_def()
    assert b.op("Neg", wx).name == "Neg"
    assert b.op("Neg", wx, name="y").name == "y_1"
    assert b.tensor("y").name == "y:0"


def test_gradients_twice_and_of_gradients() -> None:
    """Each call goes on from the nodes of the one before."""
    b = line()
    (first,) = gradients(b, "y", "w")
    assert first is not None
    (second,) = gradients(b, first, "w")
    (again,) = gradients(b, "y", "w")
    assert None not in (second, again)
    assert again != first


def test_a_builder_is_unchanged_by_an_error() -> None:
    """Of a name that it does not have."""
    b = line()
    before = b.graph_def()
    with pytest.raises(NotFoundError):
        gradients(b, "z", "w")
    assert b.graph_def() == before


async def test_an_optimizer_is_written_by_hand() -> None:
    """Gradient descent in nodes that come after the gradients, with the values of the same steps in numpy."""
    b = line()
    (slope,) = gradients(b, "y", "w")
    b.op("ApplyGradientDescent", b.tensor("w"), 0.1, slope, name="train")
    b.op("Add", b.tensor("w"), 0.0, name="after", control="train")
    w = np.float32(3)
    async with open_session(b, "cpu:1") as session:
        await session.run([], targets="begin")
        for _ in range(5):
            (after,) = await session.run("after", {"x": 0.5})
            w -= np.float32(0.1) * 2 * (w * np.float32(0.5) - 2) * np.float32(0.5)
            assert after == pytest.approx(w, rel=1e-6)


async def test_functions_stay_and_calls_are_lowered() -> None:
    """A call between y and x is replaced by its body, as in a graph; others may be added after it."""
    body = GraphBuilder()
    body.op("Square", body.placeholder("a", "float32", ()), name="s")
    squared = function_of("squared", body.graph_def(), ["a:0"], ["s:0"])
    b = GraphBuilder()
    b.function(squared)
    x = b.placeholder("x", "float32", ())
    attrs = {"f": func_attr("squared"), "Tin": ["float32"], "Tout": ["float32"]}
    y = b.op("PartitionedCall", [x], attrs=attrs, name="y")
    (slope,) = gradients(b, y[0], x)
    assert slope is not None
    b.op("PartitionedCall", [slope], attrs=attrs, name="z")
    async with open_session(b, "cpu:1") as session:
        assert [float(v) for v in await session.run([slope, "z"], {"x": 3})] == [6.0, 36.0]
