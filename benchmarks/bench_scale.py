"""The rows "scale/...": a million nodes over eight devices, and the memory that ten thousand steps leave.

The peer reads a graph of the size of the other rows, as one of a million nodes would take it half an hour; figures are
per node.
"""

from __future__ import annotations

import gc
import json
import sys
from dataclasses import replace

import numpy as np
import trio

from partita.actors import open_session
from partita.devices import local_cluster
from partita.scenarios import training_step
from partita.scenarios.workloads.training import FEATURES, VariableKind

from .bench import Bench
from .fresh import Ended, fresh
from .memory import resident_bytes
from .rows import Case, Figure, Measured, limit, share
from .running import request
from .sampling import Sample
from .workloads import Workload, drawn

_DEVICES = 8
_REPLICAS, _ROWS = 4, 32
_WARM_UP = 200  # steps, until pools and free lists are full


async def _whole(bench: Bench) -> dict[str, tuple[Sample, float]]:
    """Time and peak memory per node of "ours" and, if installed, "peer"."""
    if not bench.large:
        bench.large["ours"] = _ended(bench, drawn(bench.sizes.many_nodes, devices=_DEVICES), "benchmarks.whole_partita")
        python = bench.peers.found.get("tensorflow")
        if python is not None:
            workload = drawn(bench.sizes.graph_nodes, devices=_DEVICES)
            bench.large["peer"] = _ended(bench, workload, "benchmarks.peers.tensorflow_whole", python)
    return bench.large


def _ended(bench: Bench, workload: Workload, module: str, python: str = sys.executable) -> tuple[Sample, float]:
    ended: Ended = fresh(module, json.dumps(request(bench, workload)), python=python)
    sample = ended.sample
    per_node = replace(sample, wall_s=sample.wall_s / workload.nodes, cpu_s=sample.cpu_s / workload.nodes)
    return per_node, float(ended.output) / workload.nodes


async def _time(bench: Bench) -> Measured:
    figures = {name: Figure.of(sample) for name, (sample, _) in (await _whole(bench)).items()}
    return Measured(figures["ours"], figures.get("peer"))


async def _peak(bench: Bench) -> Measured:
    figures = {name: Figure(peak) for name, (_, peak) in (await _whole(bench)).items()}
    return Measured(figures["ours"], figures.get("peer"))


async def _growth(bench: Bench) -> Measured:
    """Resident memory that training steps leave, in a fresh process: the larger of both kinds of variables."""
    return Measured(Figure(float(fresh("benchmarks.bench_scale", str(bench.sizes.steps)).output)))


async def _left_behind(kind: VariableKind, steps: int) -> int:
    """Bytes by which this process grows in `steps` steps."""
    graph_def = training_step(kind, [f"/device:GPU:{k}" for k in range(_REPLICAS)], _ROWS)
    feeds = {"x": np.ones((_ROWS, FEATURES), np.float32), "labels": np.zeros(_ROWS, np.int32)}
    async with open_session(graph_def, local_cluster(f"cpu:1,gpu:{_REPLICAS}")) as session:
        await session.run([], targets="initialise")
        found = []
        for count in (_WARM_UP, steps):
            for _ in range(count):
                await session.run("loss", feeds, targets="train")
            gc.collect()
            found.append(resident_bytes())
    return found[1] - found[0]


CASES = [
    Case("scale/time", "tensorflow", share(0.2, 0.1), _time),
    Case("scale/peak memory", "tensorflow", share(0.25, 0.15), _peak, unit="B"),
    Case("scale/growth over steps", "", limit(4e6), _growth, unit="B"),
]

if __name__ == "__main__":
    kinds: tuple[VariableKind, ...] = ("reference", "resource")
    print(max(trio.run(_left_behind, kind, int(sys.argv[1])) for kind in kinds))
