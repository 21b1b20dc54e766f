"""A process of ours: cuts a training step with contended links and simulates it as often as asked."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from partita.devices import cut, simulate

from .contended import cluster, data_parallel, gradients
from .memory import peak_bytes
from .sampling import now


def main(request: str) -> None:
    """`nodes` of 0 is the data-parallel step of `network`, otherwise `gradients` of that many nodes."""
    asked = json.loads(request)
    gpus, nodes = asked["gpus"], asked["nodes"]
    workload = gradients(nodes, gpus) if nodes else data_parallel(asked["network"], gpus)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "cluster.toml"
        file.write_text(cluster(gpus))
        before = now()
        partitions = cut(
            workload.data, file, feeds=tuple(workload.feeds), fetches=workload.fetches, targets=workload.targets
        )
        times = [now() - before]
        for _ in range(asked["calls"]):
            before = now()
            simulate(partitions, file)
            times.append(now() - before)
    count = sum(sum(1 for _ in graph.op_nodes()) for graph in partitions.values())
    seconds = [(time.wall_s, time.cpu_s) for time in times]
    print(json.dumps({"nodes": count, "seconds": seconds, "peak": peak_bytes()}))


if __name__ == "__main__":
    main(sys.argv[1])
