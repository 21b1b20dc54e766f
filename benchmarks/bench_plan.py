"""The rows "plan/...": a search of all splits of GPT-3 175B on 64 A100s, the first thing that a process does.

a configuration     the search by the possible configurations, those that do not fit too; beside what Calculon takes for
                    one (Isaev et al., 2023: its Python model, one call a configuration)
GPT-3 175B, whole   the process, from its start to the plan
"""

from __future__ import annotations

import json
from typing import Any

from .bench import Bench
from .fresh import fresh
from .rows import PUBLISHED, Case, Figure, Measured, limit
from .sampling import Sample

_WHOLE = {"model": {"layers": 96, "hidden": 12288, "heads": 96, "positions": 2048}, "gpus": 64, "batch": 512}
_QUICK = {"model": {"layers": 2, "hidden": 64, "heads": 2, "positions": 64, "vocabulary": 100}, "gpus": 2, "batch": 4}
_CALCULON = Figure(3.8e-3)


def _told(bench: Bench) -> tuple[Sample, dict[str, Any]]:  # Any: what the process printed
    """How long the process took, and what it says; both rows share it."""
    if "plan" not in bench.contended:
        ended = fresh("benchmarks.whole_plan", json.dumps(_WHOLE if bench.sizes.width_divisor == 1 else _QUICK))
        bench.contended["plan"] = {"whole": [ended.sample.wall_s, ended.sample.cpu_s], **json.loads(ended.output)}
    told = bench.contended["plan"]
    return Sample(*told["whole"]), told


async def _configuration(bench: Bench) -> Measured:
    _, told = _told(bench)
    return Measured(Figure.of(Sample(*told["sample"]), told["configurations"]), _CALCULON)


async def _whole(bench: Bench) -> Measured:
    return Measured(Figure.of(_told(bench)[0]))


CASES = [
    Case("plan/a configuration, cold", PUBLISHED, limit(0.25e-3, 0.05e-3), _configuration),
    Case("plan/GPT-3 175B on 64 GPUs, whole", "", limit(10, 3), _whole),
]
