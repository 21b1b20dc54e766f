"""Iterators in sessions: on one task or two, on a virtual clock, in traces; and what a simulation says of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from partita.actors import RunOptions, open_session
from partita.devices import cut, local_cluster, simulate
from partita.errors import UnimplementedError
from partita.graph import RunMetadata
from partita.graph.attrs import encode
from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.protos import GraphDef
from tests.actors.sessions.deployments import Deployment, on_every_deployment
from tests.devices.kernels.datasets.pipelines import INT64, Pipeline, drained
from tests.devices.kernels.datasets.test_pulling import long
from tests.function_defs import func_attr
from tests.strategies import cpu


def mapped(device: str = "") -> GraphDef:
    """x + 70 for x = 0, 1, 2, by a function of many nodes; everything on one device, node `y` on the first."""
    p = Pipeline()
    p.add_function("long", long)
    graph = p.iterated(p.mapped("MapDataset", p.range(3), "long"))
    for node in graph.node:
        node.device = device
    graph.node.add(name="y", op="Neg", input=["next"], device=cpu(0)).attr["T"].CopyFrom(encode(INT64, "type"))
    return graph


@on_every_deployment
async def test_elements_are_pulled_on_another_device_or_task(deployment: Deployment) -> None:
    """The request that pulls has no node that names the function."""
    async with deployment.open(mapped(cpu(1)), 2) as session:
        for _ in range(2):
            await session.run([], targets=["init"])
            assert [int((await session.run("y"))[0]) for _ in range(3)] == [-70, -71, -72]


async def test_an_iterator_outlives_an_extension_of_the_graph() -> None:
    """It goes on where it was, and later nodes may pull from it."""
    graph = mapped()
    async with open_session(graph, "cpu:1") as session:
        await session.run([], targets=["init"])
        assert await session.run("next") == [70]
        more = GraphDef(versions=graph.versions)
        pull = more.node.add(name="more", op="IteratorGetNext", input=["iterator"])
        for name, value in (("output_types", [INT64]), ("output_shapes", [()])):
            pull.attr[name].CopyFrom(encode(value, f"list({'type' if name == 'output_types' else 'shape'})"))
        await session.extend(more)
        assert await session.run("more") == [71]
        assert await drained(session) == [72]


async def test_functions_of_datasets_take_no_virtual_time() -> None:
    """The pull stands for them; values are those of any session."""
    async with open_session(mapped(), "cpu:1", clock="virtual") as session:
        await session.run([], targets=["init"])
        assert await drained(session) == [70, 71, 72]


async def test_a_trace_has_the_pull_and_not_the_nodes_of_its_functions() -> None:
    """As one record."""
    async with open_session(mapped(), "cpu:1") as session:
        await session.run([], targets=["init"])
        metadata = RunMetadata()
        options = RunOptions(trace_level=RunOptions.FULL_TRACE)
        assert await session.run("next", options=options, metadata=metadata) == [70]
        assert [node.node_name for device in metadata.step_stats.dev_stats for node in device.node_stats] == [
            "iterator",
            "next",
        ]


def test_a_simulated_pull_costs_what_it_takes_to_produce_its_tensors() -> None:
    """Shapes are known before the run, counts are not; so a dataset that is reduced is refused by name."""
    cluster = local_cluster("cpu:1")
    for targets in ("init", "next"):
        parts = cut(mapped(), cluster, targets=[targets])
        assert simulate(parts, cluster, feeds={}).find(targets).duration_ns > 0
    p = Pipeline()
    state: dict[str, Any] = {"Tstate": [INT64], "Targuments": []}
    total = p.op("ReduceDataset", p.range(3), [np.int64(0)], [], f=func_attr("plus"), **state)
    parts = cut(p.b.graph_def(), cluster, fetches=[total.name])
    with pytest.raises(UnimplementedError, match="does not know how often this op calls its functions"):
        simulate(parts, cluster, feeds={})


async def test_functions_of_an_iterator_on_a_gpu_run_on_its_host() -> None:
    """A pull on a GPU calls functions on the CPU, as tf.data does, whose ops need no kernels for GPUs."""
    p = Pipeline()

    def text(b: GraphBuilder, x: Sequence[Tensor]) -> Tensor:
        return b.op("StringToNumber", b.op("AsString", x[0]), out_type=INT64)[0]

    p.add_function("text", text)
    graph = p.iterated(p.mapped("MapDataset", p.range(3), "text"), device="/device:GPU:0")
    async with open_session(graph, "gpu:1") as session:
        await session.run([], targets=["init"])
        assert await drained(session) == [0, 1, 2]
