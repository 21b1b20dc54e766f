"""A process of ours: builds the training step of a language model over many GPUs, cuts it, and simulates it."""

from __future__ import annotations

import json
import sys

from partita.devices import cut, parse_cluster, simulate
from partita.scenarios import GptModel, Split, build_model

from .contended import cluster
from .memory import peak_bytes


def main(request: str) -> None:
    """`model` are the sizes of a GPT, `split` is one as text; `representatives` says whether equal ranks are one."""
    asked = json.loads(request)
    split = Split.parse(asked["split"])
    machines = parse_cluster(cluster(split.devices))
    step = build_model(
        GptModel(**asked["model"]),
        split,
        machines,
        sequence_length=asked["sequence"],
        representatives=asked["representatives"],
        local_inputs=True,
    )
    parts = cut(step.graph, machines, targets=step.targets)
    timeline = simulate(parts, machines)
    if timeline.makespan_ns <= 0:
        raise ValueError("the step took no time")
    print(json.dumps({"runs": int(timeline.columns.runs.sum()), "peak": peak_bytes()}))


if __name__ == "__main__":
    main(sys.argv[1])
