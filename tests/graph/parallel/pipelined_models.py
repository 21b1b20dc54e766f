"""Models for tests of pipelines, and training with them.

`tower` is a perceptron over images of five layers, each a name scope; with the models of `training_models` it makes a
`TrainingModel("tower", "sgd")`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from partita.actors import open_session
from partita.graph import Graph
from partita.graph.builder.handles import Tensor
from partita.graph.dtypes import Array
from tests.graph.parallel.training_models import CLASSES, MODELS_BY_NAME, RATE, WIDTH, TrainingModel

LAYERS = ("first", "second", "third", "fourth", "last")
PIXELS = 6 * 6 * 2


def _tower(m: TrainingModel) -> Tensor:
    b = m.b
    x = b.placeholder("x", m.float_type, (m.rows, 6, 6, 2))
    labels = b.placeholder("y", "int32", (m.rows,))
    h = m.narrow(b.op("Reshape", x, [-1, PIXELS])[0])
    sizes = [PIXELS, *[WIDTH] * (len(LAYERS) - 1), CLASSES]
    for name, inputs, outputs in zip(LAYERS, sizes, sizes[1:], strict=False):
        product = b.op("MatMul", h, m.weights(f"{name}/kernel", inputs, outputs), name=f"{name}/product")
        h = b.op("BiasAdd", product, m.weights(f"{name}/bias", outputs), name=f"{name}/out")[0]
        h = h if name == LAYERS[-1] else b.op("Tanh", h, name=f"{name}/tanh")[0]
    b.op("ArgMax", h, 1, name="guess")
    return m.losses(h, labels)


MODELS_BY_NAME["tower"] = _tower


async def trained(graph: Graph, model: TrainingModel, *, rows: int = 8, steps: int = 5, **settings: Any) -> list[Array]:
    """The loss of each step, and then the parameters and slots; `settings` are those of `open_session`."""
    async with open_session(graph, "cpu:4", **settings) as session:
        await session.run([], {}, ["init"])
        losses = []
        for step in range(steps):
            losses += await session.run(["loss"], model.feeds(rows, step), ["train"])
        return [*losses, *await session.run([model.reads[name].name for name in model.names])]


def difference(expected: Sequence[Array], actual: Sequence[Array]) -> float:
    """The largest difference, relative to the largest element of its tensor or to the learning rate."""
    pairs = [(np.asarray(a, np.float64), np.asarray(b, np.float64)) for a, b in zip(expected, actual, strict=True)]
    return max(float(np.abs(a - b).max() / max(np.abs(a).max(), RATE)) for a, b in pairs)
