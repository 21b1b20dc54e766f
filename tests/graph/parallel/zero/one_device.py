"""The same training step on one device and on sharded replicas, compared after some steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from partita.actors import open_session
from partita.graph import Graph
from partita.graph.dtypes import Array
from partita.graph.parallel.replicate import replicate
from tests.graph.parallel.training_models import RATE, TrainingModel

STEPS, ROWS = 5, 12


@dataclass
class Trained:
    """Losses by step, and variables by name after the last one."""

    losses: list[Array]
    variables: dict[str, Array]


async def trained(graph: Graph, devices: str, feeds: Sequence[Mapping[str, Any]], reads: Sequence[str]) -> Trained:
    """Runs "init", then "train" and "loss" with each of the feeds, then fetches `reads`."""
    async with open_session(graph.to_graph_def(), devices) as session:
        await session.run([], {}, ["init"])
        losses = [(await session.run(["loss"], feed, ["train"]))[0] for feed in feeds]
        return Trained(losses, dict(zip(reads, await session.run(list(reads)), strict=True)))


def reads_of(graph: Graph) -> list[str]:
    """The nodes that read variables, slots included."""
    return [node.name for node in graph.op_nodes() if node.name.endswith("/read")]


async def assert_as_on_one_device(
    m: TrainingModel, replicas: int, losses: float = 1e-10, variables: float | None = 1e-10, **settings: Any
) -> Graph:
    """Losses and all variables are those of one device, up to these differences; the replicated graph.

    Differences of variables are relative to the larger of the magnitude of the tensor and the learning rate.
    """
    graph = m.graph()
    reads = reads_of(graph)
    feeds = [m.feeds(ROWS, step) for step in range(STEPS)]
    devices = [f"cpu:{rank}" for rank in range(replicas)]
    sharded = replicate(graph, devices, batch=["x", "y"], loss="loss", reduction=m.reduction, **settings)  # type: ignore[arg-type]  # "mean" or "sum"
    one = await trained(graph, "cpu:1", feeds, reads)
    many = await trained(sharded, f"cpu:{replicas}", feeds, reads)
    np.testing.assert_allclose(many.losses, one.losses, rtol=losses)
    for name in reads if variables is not None else ():
        assert_close(many.variables[name], one.variables[name], variables or 0, name)
    return sharded


def assert_close(ours: Array, theirs: Array, tolerance: float, name: str) -> None:
    """Differences are small against the larger of the tensor's magnitude and the learning rate."""
    assert ours.shape == theirs.shape, name
    assert np.max(np.abs(ours - theirs)) <= tolerance * max(float(np.max(np.abs(theirs))), RATE), name
