"""A process of ours: makes a training step parallel by `replicate`, cuts it, and simulates it as often as asked."""

from __future__ import annotations

import json
import sys

from partita.devices import cut, parse_cluster, simulate
from partita.graph import replicate
from partita.scenarios.workloads.image_training import NETWORKS, image_training

from .contended import cluster
from .sampling import now
from .timed_steps import tell

_ROWS = 8  # of each GPU


def main(request: str) -> None:
    """A step of `network` on so many `gpus`, eight a host; each has its own rows of the batch."""
    asked = json.loads(request)
    machines = parse_cluster(cluster(asked["gpus"]))
    gpus = [name for name in machines.names if "GPU" in name][: asked["gpus"]]
    step = image_training(asked["network"], None, gpus[0])
    train = step.graph.add_node("train", "NoOp", device=gpus[0])
    for target in step.targets:
        node = step.graph.find_node(target)
        if node is None:
            raise ValueError(f"no node {target!r}")
        step.graph.add_control_edge(node, train)
    before = now()
    graph = replicate(
        step.graph, gpus, batch=step.feeds, loss=step.fetches[0], feeds="per_replica", batch_statistics="local"
    )
    rewriting = now() - before
    _, side = NETWORKS[asked["network"]]
    rows = {"images": (_ROWS, side, side, 3), "labels": (_ROWS,)}
    feeds = {node.name: rows[node.name.rpartition("/")[2]] for node in graph.op_nodes() if node.op == "Placeholder"}
    tell(
        lambda: cut(graph, machines, feeds=list(feeds), fetches=step.fetches, targets=["train"]),
        lambda partitions: simulate(partitions, machines, feeds=feeds),
        asked["calls"],
        [rewriting],
    )


if __name__ == "__main__":
    main(sys.argv[1])
