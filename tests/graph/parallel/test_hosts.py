"""Batches of whole numbers are split on hosts, and a replica's host takes the place of the graph's."""

from __future__ import annotations

import pytest

from partita.devices import cut, local_cluster, simulate
from partita.graph import Graph, pipeline, replicate
from partita.graph.parallel.replicas.devices import device_maps, replica_devices
from partita.scenarios.workloads.deep_training import deep_training

GPUS = [f"/device:GPU:{k}" for k in range(4)]


def staged() -> Graph:
    """Ids through a pipeline over two GPUs."""
    return pipeline(deep_training(4, 64), GPUS[:2], batch="ids", loss="loss", microbatches=2)


def test_ids_are_split_where_a_kernel_is() -> None:
    """TensorFlow has no Split of int32 for GPUs; the pipeline is placed without soft placement."""
    graph, cluster = staged(), local_cluster("gpu:2")
    parts = cut(graph, cluster, feeds=["ids"], fetches=["loss"], targets=["train"])
    assert "pipeline/ids" in {node.name for node in parts[cluster.find("cpu:0").name].op_nodes()}
    assert simulate(parts, cluster, feeds={"ids": (64,)}).makespan_ns > 0


@pytest.mark.parametrize("job", ["", "/job:worker/replica:0/task:1"])
def test_hosts_are_those_of_the_first_device_of_a_replica(job: str) -> None:
    """The CPU of the same task."""
    graph = staged()
    entry = [f"{job}/device:GPU:{k}" for k in range(2)]
    (replaced,) = device_maps(graph, [node.id for node in graph.op_nodes()], replica_devices([entry]))
    assert replaced["/device:CPU:0"] == f"{job}/device:CPU:0"


def test_gathers_are_in_the_order_in_which_layers_need_them() -> None:
    """The parameters of the first layer come first, so that it is not held up by those of the second."""
    graph, cluster = deep_training(4, 64), local_cluster("gpu:2")
    sharded = replicate(graph, GPUS[:2], batch="ids", loss="loss", zero=3)
    parts = cut(sharded, cluster, feeds=["ids"], fetches=["loss"], targets=["train"])
    timeline = simulate(parts, cluster, feeds={"ids": (64,)})
    gathers = [event.node for event in timeline.events if event.node.endswith("/forward")]
    first = [name for name in gathers if name.startswith("zero/")]
    assert first == [f"zero/layer{k}/forward" for k in range(4)]
