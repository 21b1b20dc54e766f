"""Pipelines and recomputation of rank programs, with collectives inside the calls of stages."""

from __future__ import annotations

from typing import Any

import pytest

from partita.devices import cut, simulate
from partita.errors import InvalidArgumentError, UnimplementedError
from partita.graph import Graph, pipeline, recompute
from partita.graph.parallel.mesh.mesh import Mesh
from partita.graph.parallel.mesh.write_out import write_out
from tests.graph.parallel.mesh.rank_models import RankModel, assert_close


def staged(model: RankModel, graph: Graph, **options: Any) -> Graph:
    """The program as a pipeline over its stages."""
    return pipeline(
        graph,
        model.scopes,
        batch=["x", "y"],
        loss="share",
        microbatches=model.microbatches,
        reduction="sum",
        sized="microbatch",
        gradients=model.gradients,
        **options,
    )


async def one_rank(rows: int, **options: Any) -> Any:
    """What one rank without passes computes of the whole batch."""
    model = RankModel(Mesh(), rows=rows, **options)
    return await model.trained(model.graph())


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
@pytest.mark.parametrize("mesh", [Mesh(tp=2), Mesh(pp=2), Mesh(pp=2, tp=2)], ids=str)
async def test_collectives_of_each_micro_batch(mesh: Mesh, schedule: str) -> None:
    """Members of tp meet in every call, and losses and weights are those of one rank."""
    model = RankModel(mesh, rows=2, microbatches=4, clips=True)
    cut = staged(model, model.graph(), schedule=schedule)
    assert_close(await one_rank(8, clips=True), await model.trained(cut))


@pytest.mark.parametrize("microbatches", [1, 2])
async def test_collectives_that_run_again(microbatches: int) -> None:
    """A recomputed layer sums over tp again, in instances of its own."""
    model = RankModel(Mesh(pp=2, tp=2), rows=2, microbatches=microbatches, layers=4)
    again = recompute(model.graph(), loss="share", segments=[f"layer_{k}" for k in range(4)])
    reduced = [node for node in again.op_nodes() if node.op == "CollectiveReduceV2" and node.name.endswith("again")]
    assert reduced
    cut = staged(model, again)
    assert_close(await one_rank(2 * microbatches, layers=4), await model.trained(cut))


def test_instances_that_are_taken() -> None:
    """A collective cannot run again if another one has its instance."""
    model = RankModel(Mesh(tp=2))
    graph = model.graph()
    node = next(node for node in graph.op_nodes() if node.op == "CollectiveReduceV2" and "layer_0" in node.name)
    node.add_attr("_instance", (1 << 23) + 1)
    with pytest.raises(InvalidArgumentError, match=r"would run again with _instance .* below 8388608"):
        recompute(graph, loss="share", segments=["layer_0"])


def test_collectives_that_meet_each_other() -> None:
    """Two of one group with one instance are refused, and so are more instances than there are numbers."""
    model = RankModel(Mesh(tp=2), microbatches=2)
    graph = model.graph()
    for node in graph.op_nodes():
        if node.op == "CollectiveReduceV2":
            node.add_attr("_instance", 1)
    with pytest.raises(InvalidArgumentError, match="are of one group and both have _instance 1"):
        staged(model, graph)
    many = RankModel(Mesh(tp=2), microbatches=2**22)
    with pytest.raises(InvalidArgumentError, match="together more than 8388608 instances"):
        staged(many, many.graph())


def test_collective_of_the_whole_step() -> None:
    """One whose instance key does not count micro-batches is refused, with the node."""
    model = RankModel(Mesh(tp=2), microbatches=2)
    graph = model.graph()
    for node in graph.op_nodes():
        if "_counts_microbatches" in node.attrs:
            node.clear_attr("_counts_microbatches")
    with pytest.raises(UnimplementedError, match="takes part in one collective per step"):
        staged(model, graph)


def test_numbers_of_micro_batches_cost_no_transfer() -> None:
    """On GPUs each call has the number of its micro-batch beside it, and every collective is played."""
    model = RankModel(Mesh(pp=2, tp=2), rows=2, microbatches=3, kind="GPU")
    whole = write_out(staged(model, model.graph()), model.mesh, model.devices)
    partitions = cut(whole, "gpu:4", fetches=["loss", "rank_1/loss"], targets=["train", "rank_1/train"])
    sent = [node.name for part in partitions.values() for node in part.op_nodes() if node.op_def.record.is_send]
    assert sent
    assert not any("number" in name for name in sent)
    played = [event for event in simulate(partitions, "gpu:4").events if event.kind == "collective"]
    assert len(played) == 4 * 3 * 2  # on four ranks, three micro-batches, forwards and backwards
