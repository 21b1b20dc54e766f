"""The rows "contended/...": simulated training steps whose transfers share links.

cold, warm       `simulate` per partition node of data-parallel ResNet-50: the first and second call of a process
growth           the exponent with which the warm time grows from the fewest GPUs to the most
1,024 GPUs       `cut` and `simulate` of a million nodes, of which 42 thousand values go to a few GPUs; and the peak
"""

from __future__ import annotations

import json
from functools import partial
from math import log
from typing import Any

from .bench import Bench
from .fresh import fresh
from .rows import Case, Figure, Measured, limit
from .sampling import Sample

_CUT, _COLD, _WARM = range(3)
_NETWORK, _QUICK_NETWORK = "ResNet-50", "AlexNet"
_FEW, _MANY, _MOST = range(3)  # of `Sizes.contended_gpus`


def _process(bench: Bench, gpus: int, nodes: int, calls: int) -> dict[str, Any]:  # Any: what the process printed
    """What a process says of a step; rows share it."""
    key = f"{gpus} {nodes}"
    if key not in bench.contended:
        network = _NETWORK if bench.sizes.width_divisor == 1 else _QUICK_NETWORK
        asked = {"gpus": gpus, "nodes": nodes, "calls": calls, "network": network}
        bench.contended[key] = json.loads(fresh("benchmarks.whole_contended", json.dumps(asked)).output)
    return bench.contended[key]


def _data_parallel(bench: Bench, which: int) -> dict[str, Any]:  # Any: as in `_process`
    return _process(bench, bench.sizes.contended_gpus[which], 0, 2)


async def _per_node(bench: Bench, which: int, call: int) -> Measured:
    told = _data_parallel(bench, which)
    return Measured(Figure.of(Sample(*told["seconds"][call]), told["nodes"]))


async def _growth(bench: Bench) -> Measured:
    few, most = (_data_parallel(bench, which)["seconds"][_WARM] for which in (_FEW, _MOST))
    ratio = log(bench.sizes.contended_gpus[_MOST] / bench.sizes.contended_gpus[_FEW])
    wall, cpu = (log(b / a) / ratio for a, b in zip(few, most, strict=True))
    return Measured(Figure(wall, cpu))


async def _many_gpus(bench: Bench) -> Measured:
    told = _process(bench, bench.sizes.many_devices, bench.sizes.many_nodes, 1)
    return Measured(Figure.of(Sample(*told["seconds"][_CUT]) + Sample(*told["seconds"][_COLD])))


async def _many_gpus_peak(bench: Bench) -> Measured:
    return Measured(Figure(float(_process(bench, bench.sizes.many_devices, bench.sizes.many_nodes, 1)["peak"])))


_PER_NODE = limit(12e-6, 6e-6)

CASES = [
    *(
        Case(f"contended/{gpus} GPUs, {name}", "", promise, partial(_per_node, which=which, call=call))
        for which, gpus in ((_FEW, 8), (_MANY, 64), (_MOST, 256))
        for name, promise, call in (("cold", None, _COLD), ("warm", _PER_NODE, _WARM))
    ),
    Case("contended/growth, 8 to 256 GPUs", "", limit(1.15), _growth, unit=""),
    Case("contended/1,024 GPUs", "", limit(30), _many_gpus),
    Case("contended/1,024 GPUs, peak", "", limit(2e9), _many_gpus_peak, unit="B"),
]
