"""The rows "replicated/...": a training step for one device on many GPUs, by `replicate` and collectives.

rewrite, cut, cold, warm    per partition node of data-parallel ResNet-50: the pass, `cut`, and two calls of `simulate`
all, peak                   rewrite, cut and the first `simulate` together, and the process's peak memory
collective_time             of an all-reduce of 1,024 ranks: the first call of a group, and other sizes of that group
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from partita.devices import Cluster, collective_time, parse_cluster

from .bench import Bench
from .contended import cluster
from .fresh import fresh
from .rows import Case, Figure, Measured, limit
from .sampling import Sample, now

_REWRITE, _CUT, _COLD, _WARM = range(4)
_NETWORK, _QUICK_NETWORK = "ResNet-50", "AlexNet"
_SIZES_OF_A_GROUP = 64


def _step(bench: Bench, which: int) -> dict[str, Any]:  # Any: what the process printed
    """What a process says of a step on one of `Sizes.replicated_gpus`; rows share it."""
    gpus = bench.sizes.replicated_gpus[which]
    key = f"replicated {gpus}"
    if key not in bench.contended:
        is_whole = bench.sizes.width_divisor == 1
        asked = {"gpus": gpus, "network": _NETWORK if is_whole else _QUICK_NETWORK, "calls": 2}
        bench.contended[key] = json.loads(fresh("benchmarks.whole_replicated", json.dumps(asked)).output)
    return bench.contended[key]


async def _per_node(bench: Bench, which: int, stage: int) -> Measured:
    told = _step(bench, which)
    return Measured(Figure.of(Sample(*told["seconds"][stage]), told["nodes"]))


async def _all(bench: Bench, which: int) -> Measured:
    seconds = _step(bench, which)["seconds"]
    return Measured(Figure.of(Sample(*seconds[_REWRITE]) + Sample(*seconds[_CUT]) + Sample(*seconds[_COLD])))


async def _peak(bench: Bench, which: int) -> Measured:
    return Measured(Figure(float(_step(bench, which)["peak"])))


def _large_group(bench: Bench) -> tuple[Cluster, list[str]]:
    """A cluster that nobody has asked about, and its GPUs."""
    machines = parse_cluster(cluster(bench.sizes.many_devices))
    return machines, [name for name in machines.names if "GPU" in name][: bench.sizes.many_devices]


async def _first_time(bench: Bench) -> Measured:
    machines, ranks = _large_group(bench)
    before = now()
    collective_time("all_reduce", ranks, 1 << 20, machines)
    return Measured(Figure.of(now() - before))


async def _other_times(bench: Bench) -> Measured:
    machines, ranks = _large_group(bench)
    collective_time("all_reduce", ranks, 1 << 20, machines)
    before = now()
    for k in range(_SIZES_OF_A_GROUP):
        collective_time("all_reduce", ranks, (k + 2) << 20, machines)
    return Measured(Figure.of(now() - before, _SIZES_OF_A_GROUP))


_STAGES = [("rewrite", None, _REWRITE), ("cut", None, _CUT), ("cold", None, _COLD), ("warm", limit(10e-6, 5e-6), _WARM)]
_FEW, _MANY = range(2)  # of `Sizes.replicated_gpus`

CASES = [
    *(
        Case(f"replicated/{gpus} GPUs, {name}", "", promise, partial(_per_node, which=which, stage=stage))
        for which, gpus in ((_FEW, 64), (_MANY, 256))
        for name, promise, stage in _STAGES
    ),
    Case("replicated/256 GPUs, all", "", limit(20, 8), partial(_all, which=_MANY)),
    Case("replicated/256 GPUs, peak", "", limit(2e9), partial(_peak, which=_MANY), unit="B"),
    Case("collective_time/1,024 ranks, first", "", limit(20e-3, 10e-3), _first_time),
    Case("collective_time/1,024 ranks, other sizes", "", limit(0.3e-3, 0.1e-3), _other_times),
]
