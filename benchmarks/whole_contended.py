"""A process of ours: cuts a training step with contended links and simulates it as often as asked."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from partita.devices import cut, simulate

from .contended import cluster, data_parallel, gradients
from .timed_steps import tell


def main(request: str) -> None:
    """`nodes` of 0 is the data-parallel step of `network`, otherwise `gradients` of that many nodes."""
    asked = json.loads(request)
    gpus, nodes = asked["gpus"], asked["nodes"]
    workload = gradients(nodes, gpus) if nodes else data_parallel(asked["network"], gpus)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "cluster.toml"
        file.write_text(cluster(gpus))
        tell(
            lambda: cut(
                workload.data, file, feeds=tuple(workload.feeds), fetches=workload.fetches, targets=workload.targets
            ),
            lambda partitions: simulate(partitions, file),
            asked["calls"],
        )


if __name__ == "__main__":
    main(sys.argv[1])
