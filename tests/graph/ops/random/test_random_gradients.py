"""Gradients of random numbers by the parameters of their distributions are TensorFlow's."""

from __future__ import annotations

import numpy as np
import pytest

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


# TensorFlow 2.21 gives these for the seed [5, 7], shape [3, 4] and weights 0 to 11.
PARAMETERS = {
    "mean": ([0.0, 1, 0, 0], [12.0, 15.0, 18.0, 21.0]),
    "deviation": ([1.0, 2, 1, 1], [8.965661578029502, -15.150683523007185, 42.27731260201156, 6.791674673807225]),
    "low": ([-1.0, -np.inf, 2, 0.2], [2.61176049234023, 0.0, 15.97880392888009, 14.645373272603996]),
    "high": ([2.0, 2, 5, 0.6], [1.9749404147660647, 4.997003434094179, 0.0007959012517783939, 6.0358234848067704]),
}


@pytest.mark.parametrize("shape", [(4,), None])
async def test_bounded_numbers_change_with_their_parameters(shape: tuple[int, ...] | None) -> None:
    """Whether sizes are known before the run or not."""
    b = GraphBuilder()
    parameters = [b.placeholder(name, DataType.DOUBLE, shape) for name in PARAMETERS]
    drawn = b.op("StatelessParameterizedTruncatedNormal", np.array([3, 4]), np.array([5, 7]), *parameters)
    b.constant(np.arange(12.0).reshape(3, 4), name="weights")
    graph = b.graph()
    names = gradients(graph, [drawn.name], [f"{name}:0" for name in PARAMETERS], ["weights:0"])
    fetches = [name for name in names if name is not None]
    feeds = {f"{name}:0": np.array(value) for name, (value, _) in PARAMETERS.items()}
    slopes = await fetched(graph.to_graph_def(), fetches, feeds)
    for slope, (_, expected) in zip(slopes, PARAMETERS.values(), strict=True):
        np.testing.assert_allclose(slope, expected, rtol=1e-9)
