"""The rows "ranks/...": the training step of a GPT over many GPUs, in a process of its own from import to timeline.

1,024 GPUs        8 layers over tp 8 and dp 128: a million nodes if all ranks were written out, of which one is
4,096 GPUs        GPT-3 175B over tp 8, pp 16, dp 32 with 64 micro-batches; a rank of each stage stands for its 256
64 GPUs, all      the same model cut to 16 layers over tp 8, pp 4, dp 2: every rank is written out and played
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any, NamedTuple

from .bench import Bench
from .fresh import fresh
from .rows import Case, Figure, Measured, limit
from .sampling import Sample

_GPT3 = {"hidden": 12288, "heads": 96, "positions": 2048}
_QUICK = {"layers": 2, "hidden": 64, "heads": 2, "positions": 16, "vocabulary": 100}


class _Step(NamedTuple):
    """A model and a split; `quick` is the split of a tiny one."""

    layers: int
    split: str
    quick: str
    representatives: bool


_THOUSAND = _Step(8, "tp=8,dp=128", "tp=2,dp=2", representatives=True)
_GPT3_WHOLE = _Step(96, "tp=8,pp=16,dp=32,microbatches=64", "tp=2,pp=2,microbatches=2", representatives=True)
_WRITTEN_OUT = _Step(16, "tp=8,pp=4,dp=2,microbatches=64", "tp=2,pp=2,microbatches=2", representatives=False)


def _told(bench: Bench, step: _Step) -> tuple[Sample, dict[str, Any]]:  # Any: what the process printed
    """How long a process took, and what it says; rows share it."""
    key = f"ranks {step}"
    if key not in bench.contended:
        is_whole = bench.sizes.width_divisor == 1
        asked = {
            "model": {"layers": step.layers, **_GPT3} if is_whole else _QUICK,
            "split": (step.split if is_whole else step.quick) + ",precision=bfloat16,sequence_parallel",
            "sequence": 2048 if is_whole else 16,
            "representatives": step.representatives,
        }
        ended = fresh("benchmarks.whole_ranks", json.dumps(asked))
        bench.contended[key] = {"sample": (ended.sample.wall_s, ended.sample.cpu_s), **json.loads(ended.output)}
    found = bench.contended[key]
    return Sample(*found["sample"]), found


async def _all(bench: Bench, step: _Step) -> Measured:
    return Measured(Figure.of(_told(bench, step)[0]))


async def _per_run(bench: Bench, step: _Step) -> Measured:
    sample, told = _told(bench, step)
    return Measured(Figure.of(sample, told["runs"]))


async def _peak(bench: Bench, step: _Step) -> Measured:
    return Measured(Figure(float(_told(bench, step)[1]["peak"])))


CASES = [
    Case("ranks/1,024 GPUs", "", limit(3, 1), partial(_all, step=_THOUSAND)),
    Case("ranks/4,096 GPUs", "", limit(15, 5), partial(_all, step=_GPT3_WHOLE)),
    Case("ranks/4,096 GPUs, per run", "", None, partial(_per_run, step=_GPT3_WHOLE)),
    Case("ranks/4,096 GPUs, peak", "", limit(1e9), partial(_peak, step=_GPT3_WHOLE), unit="B"),
    Case("ranks/64 GPUs, all", "", limit(50, 20), partial(_all, step=_WRITTEN_OUT)),
    Case("ranks/64 GPUs, all, per run", "", None, partial(_per_run, step=_WRITTEN_OUT)),
    Case("ranks/64 GPUs, all, peak", "", limit(3e9), partial(_peak, step=_WRITTEN_OUT), unit="B"),
]
