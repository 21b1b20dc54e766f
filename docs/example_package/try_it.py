"""Uses the op and the kind of device of the installed package; nothing imports `acme_ops` here."""

from __future__ import annotations

import numpy as np

from partita.actors import BlockingSession
from partita.devices import cut, local_cluster, simulate
from partita.graph import GraphBuilder, gradients

b = GraphBuilder()
values = b.placeholder("values", "float32", (None,))
smoothed = b.op("Smooth", values, 1, name="smoothed", device="/device:NPU:0")[0]
graph = b.graph()
(grad,) = gradients(graph, smoothed, values)
cluster = local_cluster("cpu:1,npu:1")
with BlockingSession(graph, cluster) as session:
    for result in session.run([smoothed, grad], {"values": np.float32([3, 0, 6])}):
        print(result)
parts = cut(graph, cluster, feeds=["values"], fetches=["smoothed"])
event = simulate(parts, cluster, feeds={"values": (1_000_000,)}).find("smoothed")
print(event.device, event.flops, "operations,", event.duration_ns, "ns,", event.provenance)
