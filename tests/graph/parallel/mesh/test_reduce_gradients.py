"""Gradients of rank programs over the ranks of a mesh, with ZeRO: they compute what one rank computes."""

from __future__ import annotations

from typing import Any

import pytest

from partita.errors import InvalidArgumentError, NotFoundError, UnimplementedError
from partita.graph import Graph
from partita.graph.parallel.mesh.mesh import Mesh
from partita.graph.parallel.mesh.reduce_gradients import reduce_gradients
from tests.graph.parallel.mesh.rank_models import RankModel, assert_close
from tests.graph.parallel.mesh.test_rank_pipelines import one_rank, staged


def reduced(model: RankModel, graph: Graph, **options: Any) -> Graph:
    """The program with gradients summed over its mesh."""
    ends: dict[str, Any] = {"batch": ["x", "y"], "loss": "share", "others": ["counted"]}
    return reduce_gradients(graph, model.mesh, model.stages, model.gradient_of, **ends, **options)


@pytest.mark.parametrize("zero", [0, 1, 2])
@pytest.mark.parametrize("mesh", [Mesh(dp=2), Mesh(pp=2, dp=3, tp=2)], ids=lambda mesh: mesh.text)
async def test_ranks_of_dp_are_one_rank(mesh: Mesh, zero: int) -> None:
    """Losses and weights are those of one rank with the whole batch, without passes and as a pipeline."""
    microbatches = mesh.pp
    model = RankModel(mesh, rows=2, microbatches=microbatches, clips=True)
    graph = reduced(model, model.graph(), zero=zero)
    if microbatches > 1:
        graph = staged(model, graph)
    expected = await one_rank(2 * mesh.dp * microbatches, clips=True)
    assert_close(expected, await model.trained(graph))
