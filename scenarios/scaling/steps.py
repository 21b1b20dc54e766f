"""A training step of an image network on the GPUs of some hosts, cut for them: what is simulated for a row.

    image_training, one GPU --replicate--> a replica per GPU --placements--> parameters where the row says --cut-->

Images are on the GPUs already, as the benchmark's synthetic ones; labels are fed. The graphs are those of any batch:
whoever simulates them says how many images a GPU takes.
"""

from __future__ import annotations

from typing import NamedTuple

from ...devices.cluster import Cluster
from ...devices.cluster_file import parse_cluster
from ...devices.pipeline.cutting import cut
from ...graph import Graph
from ...graph.parallel.replicate import replicate
from ..workloads.image_training import image_training
from .machines import GPUS, HOSTS, REPLICAS, ParameterPlace
from .placements import by_host, keep, spread

GPUS_PER_HOST = 8


class StepSetting(NamedTuple):
    """A host of the catalog, a network, where parameters are, and how many GPUs."""

    machine: str
    network: str
    parameters: ParameterPlace
    gpus: int

    @property
    def hosts(self) -> int:
        """How many hosts have the GPUs: only parameters on `HOSTS` use several."""
        return -(-self.gpus // GPUS_PER_HOST)

    def cluster(self) -> Cluster:
        """The hosts."""
        return parse_cluster(f'[[host]]\nmodel = "{self.machine}"\ntasks = {self.hosts}\n')


class ParallelStep(NamedTuple):
    """The graph of each device, and the shapes without rows of tensors that have some: fed ones, and nodes."""

    partitions: dict[str, Graph]
    fed: dict[str, tuple[int, ...]]
    kept: dict[str, tuple[int, ...]]


def parallel_step(setting: StepSetting, cluster: Cluster) -> ParallelStep:
    """The graphs of a step; errors are those of `replicate` and `cut`."""
    gpus = [_device(k // GPUS_PER_HOST, f"GPU:{k % GPUS_PER_HOST}") for k in range(setting.gpus)]
    cpus = [_device(host, "CPU:0") for host in range(setting.hosts)]
    step = image_training(setting.network, None, gpus[0])
    graph = replicate(
        step.graph,
        gpus,
        batch=step.feeds,
        loss=step.fetches[0],
        feeds="per_replica",
        parameters=None if setting.parameters == REPLICAS else cpus[0],
        batch_statistics="local",
    )
    if setting.parameters == GPUS:
        spread(graph, cpus[0], gpus)
    elif setting.parameters == HOSTS:
        spread(graph, cpus[0], cpus)
        by_host(graph, cpus)
    kept, fed = keep(graph)
    return ParallelStep(cut(graph, cluster, feeds=list(fed), fetches=step.fetches, targets=step.targets), fed, kept)


def _device(host: int, name: str) -> str:
    return f"/job:localhost/replica:0/task:{host}/device:{name}"
