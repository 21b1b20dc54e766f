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
    expected = await one_rank(model.total, clips=True)
    assert_close(expected, await model.trained(graph))


@pytest.mark.parametrize("zero", [0, 1, 2])
@pytest.mark.parametrize("mesh", [Mesh(dp=2, cp=2), Mesh(dp=4, ep=2), Mesh(dp=4, ep=2, cp=2)], ids=lambda m: m.text)
async def test_axes_of_variables(mesh: Mesh, zero: int) -> None:
    """Experts are summed over edp, all else over dp, and ranks of cp are peers."""
    model = RankModel(mesh, rows=1, clips=True, over="ep")
    graph = reduced(model, model.graph(), zero=zero)
    assert_close(await one_rank(model.total, clips=True), await model.trained(graph))


async def test_groups_of_neighbours() -> None:
    """ZeRO inside of ep neighbours, with peers along edp."""
    model = RankModel(Mesh(dp=4, ep=2), rows=1, clips=True)
    graph = reduced(model, model.graph(), zero=1, zero_group=2)
    axes = {node.attrs["_axis"] for node in graph.op_nodes() if node.name.startswith("zero") and "_axis" in node.attrs}
    assert axes == {b"ep", b"edp+cp"}
    assert_close(await one_rank(model.total, clips=True), await model.trained(graph))


async def test_parameters_of_shards() -> None:
    """With zero=3 layers are gathered for each pass."""
    model = RankModel(Mesh(dp=3, tp=2), rows=1, clips=True, shards="dp")
    graph = reduced(model, model.graph(), zero=3)
    assert_close(await one_rank(model.total, clips=True), await model.trained(graph))


def test_parameters_of_shards_in_micro_batches() -> None:
    """Gathers inside of the stages are refused, and the error names the stages that are none."""
    model = RankModel(Mesh(dp=2), rows=1, microbatches=2, layers=4)
    graph = reduced(model, model.graph(), zero=3, prefetch=0, units=[f"layer_{k}" for k in range(4)])
    with pytest.raises(UnimplementedError, match=r"takes part in one collective per step.*zero=1 or 2"):
        staged(model, graph)


def test_axes_of_one_rank() -> None:
    """They add nothing."""
    model = RankModel(Mesh(tp=2))
    graph = model.graph()
    assert str(reduced(model, graph, zero=2)) == str(graph)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"zero_group": 3, "zero": 1}, InvalidArgumentError, "zero_group=3: 4 replicas cannot be cut into groups"),
        ({"zero_group": 2, "zero": 1}, UnimplementedError, "zero_group=2: mesh .* has no axis of so many neighbours"),
        ({"zero": 4}, InvalidArgumentError, "there are stages 1, 2 and 3"),
    ],
)
def test_what_does_not_fit(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    """Groups, stages and gradients that do not fit are refused by name."""
    model = RankModel(Mesh(dp=4), clips=True)
    graph = model.graph()
    with pytest.raises(error, match=message):
        reduced(model, graph, **changes)


def test_unknown_variable() -> None:
    """It is not found, and the nearest is named."""
    model = RankModel(Mesh(dp=2))
    graph = model.graph()
    model.gradient_of = {"layer_0/up/variables": next(iter(model.gradient_of.values()))}
    with pytest.raises(NotFoundError, match="no variable 'layer_0/up/variables'"):
        reduced(model, graph)
