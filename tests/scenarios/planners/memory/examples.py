"""Models and splits that the suites of planned memory share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from partita.scenarios import Split
from partita.scenarios.models.description import ModelDescription
from partita.scenarios.models.gpt import GptModel
from partita.scenarios.models.llama import LlamaModel
from partita.scenarios.models.moe import LatentAttention, MoeModel
from partita.scenarios.planners.configurations import Configurations
from partita.scenarios.planners.memory import MemoryColumns, memory_columns
from partita.scenarios.planners.step import PlannedStep

GIB = 2**30
LATENT = LatentAttention(kv_rank=512, nope_size=128, rope_size=64, value_size=128, q_rank=1536)
MODELS: tuple[ModelDescription, ...] = (
    GptModel(layers=24, hidden=1024, heads=16, vocabulary=50304, positions=4096),
    LlamaModel(layers=24, hidden=2048, heads=16, kv_heads=4, intermediate=5632, vocabulary=32000),
    LlamaModel(layers=24, hidden=1024, heads=16, intermediate=2816, vocabulary=32000, tied=True),
    MoeModel(
        layers=24,
        hidden=1024,
        heads=16,
        kv_heads=4,
        intermediate=2816,
        vocabulary=32000,
        experts=16,
        topk=2,
        expert_intermediate=1408,
        dense_layers=1,
    ),
    MoeModel(
        layers=24,
        hidden=2048,
        heads=16,
        intermediate=8192,
        vocabulary=102400,
        latent=LATENT,
        experts=16,
        topk=4,
        expert_intermediate=1024,
        shared_intermediate=2048,
        dense_layers=3,
    ),
)
EXPERTS = tuple(model for model in MODELS if model.shared_by_expert_parallel)
PIPELINES = ((1, 1), (2, 1), (3, 1), (4, 1), (8, 1), (2, 2), (2, 3), (3, 2), (4, 2), (4, 3), (8, 3))
"""ranks and stages of each that divide 24 layers"""


def steps(models: Sequence[ModelDescription] = MODELS) -> st.SearchStrategy[PlannedStep]:
    """A step of one of the models."""
    return st.builds(
        PlannedStep,
        st.sampled_from(models),
        st.sampled_from([1024, 4096]),
        gradient_bytes=st.sampled_from([2, 4]),
        fused_attention=st.booleans(),
        fused_loss=st.booleans(),
        dropout=st.booleans(),
    )


def memory_of(step: PlannedStep, *splits: Split) -> MemoryColumns:
    """The columns of some splits."""
    return memory_columns(step, Configurations.of(splits))


@st.composite
def splits(draw: st.DrawFn, /, step: PlannedStep, *, interleaves: bool = True, **fixed: Any) -> Split:
    """A split that the step's model can have; `fixed` are fields that are not drawn."""
    pp, interleave = draw(st.sampled_from([pair for pair in PIPELINES if interleaves or pair[1] == 1]))
    pp = fixed.get("pp", pp)
    dp = draw(st.sampled_from([1, 2, 4, 8]))
    fields: dict[str, Any] = {
        "dp": dp,
        "tp": draw(st.sampled_from([1, 2, 4])),
        "pp": pp,
        "cp": draw(st.sampled_from([1, 2])),
        "cp_kind": draw(st.sampled_from(["ring", "heads"])),
        "ep": draw(st.sampled_from([1, 2])) if step.model in EXPERTS and dp > 1 else 1,
        "microbatch": draw(st.sampled_from([1, 2, 4])),
        "microbatches": 24 * draw(st.integers(1, 3)),
        "interleave": interleave if pp > 1 else 1,
        "sequence_parallel": draw(st.booleans()),
        "zero": draw(st.integers(0, 3 if pp == 1 else 2)),
        "recompute": draw(st.sampled_from(["none", "selective", "full", "products"])),
        "precision": draw(st.sampled_from(["bfloat16", "float32"])),
    }
    split = Split(**{**fields, **fixed})
    split.check(step.model, step.sequence_length)
    return split
