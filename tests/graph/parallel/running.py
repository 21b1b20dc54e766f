"""Runs training steps, and compares what several devices compute with what one does."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partita.actors import open_session
from partita.graph import Graph
from partita.graph.dtypes import Array
from tests.graph.parallel.training_models import RATE, TrainingModel

ROWS, STEPS = 8, 5
LIMITS = {"float64": 1e-10, "float32": 1e-5, "mixed": 1e-2}


class Trained(NamedTuple):
    """The losses of a few steps, and the variables after them."""

    losses: list[float]
    variables: dict[str, Array]


def devices(count: int) -> list[str]:
    """Names of CPUs."""
    return [f"cpu:{k}" for k in range(count)]


async def trained(graph: Graph, model: TrainingModel, cluster: str, *, parts: int = 1) -> Trained:
    """Runs the steps of a model; with `parts` every replica is fed its rows."""
    async with open_session(graph, cluster) as session:
        await session.run([], targets="init")
        losses = []
        for step in range(STEPS):
            feeds = by_replica(model.feeds(ROWS, step), parts)
            losses.append(float((await session.run("loss", feeds, targets="train"))[0]))
        values = await session.run([f"{name}/read" for name in model.names])
    return Trained(losses, dict(zip(model.names, values, strict=True)))


def by_replica(feeds: dict[str, Array], parts: int) -> dict[str, Array]:
    """Feeds of the placeholders of all replicas."""
    if parts == 1:
        return feeds
    return {
        f"replica_{rank}/{name}" if rank else name: rows
        for name, value in feeds.items()
        for rank, rows in enumerate(np.split(value, parts))
    }


def assert_alike(one: Trained, several: Trained, dtype: str) -> None:
    """Losses by their size; in float64 variables by the larger of their size and the learning rate.

    Where gradients are small, an optimizer that divides by their size turns their rounding errors into steps.
    """
    limit = LIMITS[dtype]
    np.testing.assert_allclose(several.losses, one.losses, rtol=limit)
    if dtype != "float64":
        return
    for name, value in one.variables.items():
        scale = max(RATE, float(np.max(np.abs(value))))
        difference = float(np.max(np.abs(several.variables[name] - value)))
        assert difference <= limit * scale, f"{name}: {difference} of {scale}"
