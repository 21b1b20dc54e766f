"""A training step of an image network on the GPUs of some hosts, cut for them: what is simulated for a row.

    image_training, one GPU --replicate--> a replica per GPU --placements--> parameters where the row says --cut-->

Images are on the GPUs already, as the benchmark's synthetic ones; labels are fed.
"""

from __future__ import annotations

from typing import NamedTuple

from ...devices.cluster import Cluster
from ...devices.cluster_file import parse_cluster
from ...devices.pipeline.cutting import cut
from ...graph import Graph
from ..workloads.image_training import image_training
from .machines import GPUS, HOSTS, REPLICAS, ParameterPlace
from .placements import by_host, keep, spread

GPUS_PER_HOST = 8


class StepSetting(NamedTuple):
    """A host of the catalog, a network, how many images each GPU takes, where parameters are, and how many GPUs."""

    machine: str
    network: str
    images: int
    parameters: ParameterPlace
    gpus: int

    @property
    def hosts(self) -> int:
        """How many hosts have the GPUs: only parameters on `HOSTS` use several."""
        return -(-self.gpus // GPUS_PER_HOST)

    def cluster(self) -> Cluster:
        """The hosts."""
        return parse_cluster(f'[[host]]\nmodel = "{self.machine}"\ntasks = {self.hosts}\n')


def parallel_step(setting: StepSetting, cluster: Cluster) -> dict[str, Graph]:
    """The graph of each device of a step; UnimplementedError and others as `replicate` and `cut` raise them."""
    gpus = [_device(k // GPUS_PER_HOST, f"GPU:{k % GPUS_PER_HOST}") for k in range(setting.gpus)]
    cpus = [_device(host, "CPU:0") for host in range(setting.hosts)]
    owner = None if setting.parameters == REPLICAS else cpus[0]
    step = image_training(setting.network, setting.images, gpus[0], owner, is_fed=True)
    graph = step.graph
    if setting.gpus > 1:
        graph = _replicated(graph, gpus, owner)
    if setting.parameters == GPUS:
        spread(graph, cpus[0], gpus)
    elif setting.parameters == HOSTS:
        spread(graph, cpus[0], cpus)
        by_host(graph, cpus)
    names = [node.name for node in graph.op_nodes() if node.op == "Placeholder"]
    images = [name for name in names if "images" in name]
    keep(graph, images)
    updates = [node.name for node in graph.op_nodes() if node.op == "ResourceApplyGradientDescent"]
    feeds = [name for name in names if name not in images]
    return cut(graph, cluster, feeds=feeds, fetches=step.fetches, targets=updates)


def _device(host: int, name: str) -> str:
    return f"/job:localhost/replica:0/task:{host}/device:{name}"


def _replicated(graph, gpus, owner):
    from ...graph.protos import GraphDef
    from ...graph import graph_def_to_graph
    one = graph.to_graph_def()
    host = owner or gpus[0]
    tw = {n.name for n in one.node if n.device == gpus[0] and not (host == gpus[0] and (n.op in ("VarHandleOp","ResourceApplyGradientDescent") or n.op=="ReadVariableOp" or n.name=="rate"))}
    made = GraphDef(versions=one.versions)
    def of(name, gpu):
        c, t = ("^", name[1:]) if name.startswith("^") else ("", name)
        return f"{c}replica_{gpu}/{t}" if gpu and t.partition(":")[0] in tw else name
    for node in one.node:
        if node.name in tw:
            continue
        s = made.node.add(); s.CopyFrom(node)
        if node.op == "ResourceApplyGradientDescent":
            g = node.input[2]
            t = made.node.add(name=f"{g.replace(':','_')}/sum", op="AddN", device=host)
            t.input.extend(of(g, k) for k in range(len(gpus))); t.attr["N"].i, t.attr["T"].type = len(gpus), 1
            s.input[2] = t.name
    for k, gpu in enumerate(gpus):
        for node in one.node:
            if node.name in tw:
                c = made.node.add(); c.CopyFrom(node); c.name, c.device = of(node.name, k), gpu
                c.input[:] = [of(x, k) for x in node.input]
    return graph_def_to_graph(made)
