"""Gradients of random numbers by the parameters of their distributions are TensorFlow's."""

from __future__ import annotations

import numpy as np

from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import DataType
from partita.graph.gradients import gradients
from tests.runs import fetched

ALPHAS = np.array([0.3, 1.0, 2.5])


async def test_gamma_numbers_change_with_alpha() -> None:
    """TensorFlow 2.21 gives this for the seed [5, 7], shape [2, 3] and weights 1 to 6."""
    b = GraphBuilder()
    alphas = b.placeholder("alphas", DataType.DOUBLE, (3,))
    drawn = b.op("StatelessRandomGammaV2", np.array([2, 3]), np.array([5, 7]), alphas)
    b.constant(np.arange(1.0, 7.0).reshape(2, 3), name="weights")
    graph = b.graph()
    (name,) = gradients(graph, [drawn.name], ["alphas:0"], ["weights:0"])
    assert name is not None
    (slope,) = await fetched(graph.to_graph_def(), [name], {"alphas:0": ALPHAS})
    np.testing.assert_allclose(slope, [6.367101682210331, 10.754860204258609, 6.92488422607448], rtol=1e-6)


async def test_each_alpha_sums_the_slopes_of_its_numbers() -> None:
    """With a state too; shapes known in the run only."""
    b = GraphBuilder()
    alphas = b.placeholder("alphas", DataType.DOUBLE, None)
    drawn = b.op("RandomGamma", b.placeholder("shape", DataType.INT32, (2,)), alphas, seed=3)
    slope = b.op("RandomGammaGrad", alphas, drawn)
    b.op("Sum", slope, np.array([0, 1], np.int32), name="sums")
    b.op("OnesLike", drawn, name="weights")
    graph = b.graph()
    (name,) = gradients(graph, [drawn.name], ["alphas:0"], ["weights:0"])
    assert name is not None
    feeds = {"alphas:0": ALPHAS, "shape:0": np.array([4, 2], np.int32)}
    back, sums = await fetched(graph.to_graph_def(), [name, "sums:0"], feeds)
    np.testing.assert_allclose(back, sums, rtol=1e-12)
