"""Gradients of rank programs over the ranks of a mesh, with ZeRO: they compute what one rank computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partita.actors import open_session
from partita.devices import cut, simulate
from partita.errors import InvalidArgumentError, NotFoundError, UnimplementedError
from partita.graph import DataType, Graph, GraphBuilder, gradients
from partita.graph.parallel.mesh.mesh import Mesh
from partita.graph.parallel.mesh.rank_program import RankProgram
from partita.graph.parallel.mesh.reduce_gradients import reduce_gradients
from partita.graph.parallel.mesh.write_out import prefix_of, write_out
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


@pytest.mark.parametrize(("mesh", "over"), [(Mesh(dp=4), "tp"), (Mesh(dp=4, cp=2), "tp"), (Mesh(dp=8, ep=2), "ep")])
async def test_groups_of_neighbours(mesh: Mesh, over: str) -> None:
    """ZeRO inside of groups of two, whose peers are summed besides."""
    model = RankModel(mesh, rows=1, clips=True, over=over)
    graph = reduced(model, model.graph(), zero=1, zero_group=2)
    axes = {node.attrs["_axis"] for node in graph.op_nodes() if node.name.startswith("zero") and "_axis" in node.attrs}
    assert axes == {b"dp:2", b"dp/2+cp"} | ({b"edp:2", b"edp/2+cp"} if over == "ep" else set())
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


@pytest.mark.parametrize(
    ("op", "sign"), [("Sum", 1), ("Mean", 1), ("Max", -1), ("Min", 1), ("Prod", 1), ("All", 1), ("Any", 1)]
)
async def test_padding_does_not_count(op: str, sign: int) -> None:
    """Reductions of 5 elements over 3 ranks, whose shards of 2 have one element that is none."""
    b, mesh = GraphBuilder(), Mesh(dp=3)
    r = RankProgram(b, mesh)
    with r.on_stage(0, "/device:CPU:0"):
        x = b.placeholder("x", "float32", (1, 5))
        w = b.op("VarHandleOp", name="w", dtype="float32", shape=(5,), shared_name="w")[0]
        read = b.op("ReadVariableOp", w, dtype="float32", name="read")[0]
        loss = b.op("Sum", b.op("Mul", x, read), [0, 1], name="loss")[0]
        (slope,) = gradients(b, [loss], [read])
        shifted = b.op("AddV2", slope, np.float32(0 if op in ("Max", "Min", "All") else sign))  # padding is not 0
        if op in ("All", "Any"):
            shifted = b.op({"All": "Greater", "Any": "Less"}[op], slope, np.float32(0.5))
        found = b.op(op, shifted, [0], name="found")[0]
        factor = b.op("Cast", found, DstT="float32") if found.dtype == DataType.BOOL else found
        b.group(b.op("ResourceApplyGradientDescent", w, factor, slope), name="train")
        b.group(b.op("AssignVariableOp", w, np.zeros(5, np.float32)), name="initialise")
    step = reduce_gradients(b.graph(), mesh, ["cpu:0"], {"w": str(slope)}, batch="x", loss="loss", zero=2)
    assert any(node.op == "SelectV2" for node in step.op_nodes())
    whole = write_out(step, mesh, [f"/device:CPU:{k}" for k in range(3)])
    rows = sign * np.arange(1, 6, dtype=np.float32)
    async with open_session(whole, "cpu:3") as session:
        names = [prefix_of(k) for k in range(3)]
        await session.run([], {}, [f"{name}initialise" for name in names])
        feeds = {f"{name}x": rows[None] * (k == 0) for k, name in enumerate(names)}
        values = await session.run([f"{name}found" for name in names], feeds, [f"{name}train" for name in names])
    expected = {"Sum": 20, "Mean": 4, "Max": -1, "Min": 1, "Prod": 720, "All": True, "Any": False}[op]
    assert [np.asarray(value).item() for value in values] == [expected] * 3


async def test_gradients_travel_while_others_are_computed() -> None:
    """With the last calls inlined the first bucket of a stage begins before the last product of its way back ends."""
    begins = {}
    for inline_last in (False, True):
        model = RankModel(Mesh(pp=2, dp=2), rows=2, microbatches=2, layers=4, kind="GPU")
        graph = staged(model, reduced(model, model.graph(), bucket_bytes=300), inline_last=inline_last)
        whole = write_out(graph, model.mesh, model.devices)
        partitions = cut(whole, "gpu:4", fetches=["loss", "rank_1/loss"], targets=["train", "rank_1/train"])
        events = [event for event in simulate(partitions, "gpu:4").events if event.device.endswith("GPU:0")]
        first = min(event.start_ns for event in events if event.kind == "collective")
        begins[inline_last] = first < max(event.end_ns for event in events if event.op == "MatMul")
    assert begins == {False: False, True: True}
    model = RankModel(Mesh(pp=2, dp=2), rows=2, microbatches=2, layers=4)
    graph = staged(model, reduced(model, model.graph()), inline_last=True)
    assert_close(await one_rank(model.total, layers=4), await model.trained(graph))
