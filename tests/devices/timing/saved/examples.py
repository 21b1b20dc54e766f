"""Simulated steps of all kinds, each with something that a file might lose."""

from __future__ import annotations

from functools import cache

import numpy as np

from partita.devices import Cluster, cut, local_cluster, parse_cluster
from partita.devices.timing import Timeline, simulate
from partita.graph.builder import GraphBuilder
from partita.graph.parallel.mesh.mesh import Mesh
from tests.devices.timing.playing.test_folding import long_loop
from tests.devices.timing.representatives.steps import played, sent, summed

RACK = """
[[host]]
model = "DGX-H100"
job = "trainer"
tasks = 2

[[slow]]
device = "/job:trainer/replica:0/task:0/device:GPU:0"
factor = 1.5
random = { seed = 7, every = "10 us", lasts = "5 us" }

[[degrade]]
link = "400 Gb InfiniBand"
factor = 4
to = "1 ms"

[[link]]
between = "hosts"
link = "400 Gb InfiniBand"
"""


def loop() -> Timeline:
    """Iterations that stand for 99,900 others."""
    return simulate(cut(long_loop(100_000), "cpu:1", feeds=["x"], fetches=["y"]), "cpu:1")


def layers(cluster: Cluster | str, devices: list[str], size: int) -> Timeline:
    """Products on one device after the other; the last is fetched."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (size, size))
    for number, device in enumerate(devices):
        with b.device(device):
            w = b.constant(np.ones((size, size), np.float32), name=f"w{number}")
            x = b.op("Relu", b.op("MatMul", x, w, name=f"m{number}")[0], name=f"r{number}")[0]
            shape = b.op("Shape", x)  # of which a GPU has the output in the memory of its host
            b.op("Fill", shape, np.float32(1), name=f"s{number}")
    b.identity(x, name="y")
    targets = [f"s{number}" for number in range(len(devices))]
    return simulate(cut(b, cluster, feeds=["x"], fetches=["y"], targets=targets), cluster)


def machines() -> Timeline:
    """Two machines with a slow GPU and a slow network."""
    return layers(parse_cluster(RACK), [f"/job:trainer/task:{task}/gpu:{gpu}" for task in (0, 1) for gpu in (0, 1)], 64)


def gpu() -> Timeline:
    """A GPU with host memory beside its own."""
    return layers("gpu:2", ["/gpu:0", "/cpu:0", "/gpu:1"], 512)


def out_of_memory() -> Timeline:
    """More than a device has."""
    spec = """[[device]]
    spec = { kind = "CPU", memory = "1 MB", memory_bandwidth = "100 GB/s", peak_flops = { fp32 = "1 TFLOP/s" } }
    price = "2.50 $/h"
    mtbf = "50000 h"
    """
    return layers(parse_cluster(spec), ["/cpu:0"] * 3, 512)


def representatives() -> Timeline:
    """Devices that stand for others, on several machines."""
    cluster = parse_cluster('[[host]]\nmodel = "DGX-H100"\ntasks = 2\n')
    return played(sent(), Mesh(pp=2, dp=2, tp=4), cluster)


def collective() -> Timeline:
    """Members of a collective, each with a device of its own, and a device that was restarted."""
    cluster = local_cluster("gpu:4")
    cluster = cluster.with_restarted(cluster.names[-1])
    return played(summed("tp", times=2), Mesh(tp=4), cluster)


EXAMPLES = {each.__name__: cache(each) for each in (loop, machines, gpu, out_of_memory, representatives, collective)}
