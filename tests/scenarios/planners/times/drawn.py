"""Models of few layers but real widths, machines, and splits drawn for them, that tests of times share."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from hypothesis import settings, strategies as st

from partita.devices import machines_of, parse_cluster
from partita.graph.arrays import Floats
from partita.scenarios import GptModel, LlamaModel, MoeModel, Split
from partita.scenarios.models.moe import LatentAttention
from partita.scenarios.planners.configurations import Configurations
from partita.scenarios.planners.machine import Machine
from partita.scenarios.planners.step import PlannedStep
from partita.scenarios.planners.times import StepTimes, step_times

LENGTH = 4096
GPT = GptModel(layers=8, hidden=4096, heads=32, positions=LENGTH)
LLAMA = LlamaModel(layers=8, hidden=4096, heads=32, intermediate=14336, vocabulary=128256, kv_heads=8)
MOE = MoeModel(
    layers=8,
    hidden=4096,
    heads=32,
    intermediate=14336,
    vocabulary=32000,
    kv_heads=8,
    dense_layers=2,
    experts=8,
    topk=2,
    expert_intermediate=7168,
    shared_intermediate=4096,
)
LATENT = MoeModel(
    layers=4,
    hidden=4096,
    heads=32,
    intermediate=12288,
    vocabulary=32000,
    dense_layers=1,
    experts=16,
    topk=4,
    expert_intermediate=2048,
    shared_intermediate=2048,
    latent=LatentAttention(kv_rank=512, nope_size=128, rope_size=64, value_size=128, q_rank=1536),
)
STEPS = {
    "gpt": PlannedStep(GPT, LENGTH),
    "megatron": PlannedStep(
        GPT, LENGTH, fused_attention=False, fused_loss=False, dropout=True, gathers_again=True, parts_transfers=True
    ),
    "llama": PlannedStep(LLAMA, LENGTH),
    "moe": PlannedStep(MOE, LENGTH, imbalance=1.25),
    "latent": PlannedStep(LATENT, LENGTH, accumulation_bytes=12.0),
}
"""one of each family of models, and of each way to run a layer"""


@cache
def machine(gpus: str = "A100-80GB:64") -> Machine:
    """The catalog's machines."""
    return Machine.of(machines_of(gpus))


@cache
def hosts_of(hosts: int, per_host: int, ports: int) -> Machine:
    """A100s with so many ports of 200 Gb/s a host."""
    return Machine.of(
        parse_cluster(
            f'[[device]]\nspec = "A100-80GB"\njob = "training"\ntasks = {hosts}\ncount = {per_host}\n'
            f'[[nic]]\nlink = "200 Gb InfiniBand"\ncount = {ports}\n'
        )
    )


@st.composite
def splits(draw: st.DrawFn, /, *, has_experts: bool = True, **fixed: Any) -> Split:  # Any: fields of Split
    """A split on at most 64 devices that every model here can have; `fixed` are not drawn."""

    def of(name: str, *values: Any) -> Any:
        return fixed[name] if name in fixed else draw(st.sampled_from(values))

    tp, cp, pp = of("tp", 1, 2, 4, 8), of("cp", 1, 1, 2), of("pp", 1, 2, 4)
    kind = "ring" if tp * cp > 8 else of("cp_kind", "ring", "heads")
    dp = of("dp", *(it for it in (1, 2, 4, 8, 16) if it * tp * cp * pp <= 64))
    zero = of("zero", 0, 1, 2, *([3] if pp == 1 else []))
    interleave = of("interleave", *([1, 2] if pp > 1 else [1]))
    given: dict[str, Any] = {
        "tp": tp,
        "cp": cp,
        "pp": pp,
        "dp": dp,
        "cp_kind": kind,
        "zero": zero,
        "interleave": interleave,
        "ep": of("ep", *(it for it in (1, 2, 4, 8) if has_experts and dp % it == 0)) if has_experts else 1,
        "microbatch": of("microbatch", 1, 2),
        "microbatches": of("microbatches", 4, 8, 32),
        "sequence_parallel": of("sequence_parallel", False, True) and tp > 1,
        "recompute": of("recompute", "none", "selective", "full", "products"),
        "zero_group": of("zero_group", None, *(it for it in (1, 2, 4) if dp % it == 0)) if zero else None,
        "schedule": "interleaved" if interleave > 1 else of("schedule", "1f1b", "gpipe"),
        "precision": "bfloat16",
    }
    return Split(**{**given, **fixed})


def tables(**fixed: Any) -> st.SearchStrategy[list[Split]]:  # Any: fields of Split
    """Splits that are answered for together: a call of the closed form is much slower than a row more."""
    return st.lists(splits(**fixed), min_size=8, max_size=16)


few = settings(max_examples=5)
"""each example has many rows"""
steps = st.sampled_from(sorted(STEPS)).map(STEPS.__getitem__)


def times_of(step: PlannedStep, on: Machine, *rows: Split, **beside: Any) -> StepTimes:  # Any: as `step_times` takes
    """The times of splits in one table."""
    return step_times(step, on, Configurations.of(rows), **beside)


def all_with(rows: list[Split], **fields: Any) -> list[Split]:  # Any: fields of Split
    """The splits, with some fields the same in all."""
    return [replace(row, **fields) for row in rows]


def parts_of(times: StepTimes) -> dict[str, Floats]:
    """The columns of an answer by name."""
    columns = {name: column for name, column in times._asdict().items() if isinstance(column, np.ndarray)}
    return {**columns, **times.by_category}


def same(one: Floats, other: Floats) -> bool:
    """Whether columns are equal, but for the rounding of sums in another order."""
    return bool(np.allclose(one, other, rtol=1e-10, atol=1e-3))
