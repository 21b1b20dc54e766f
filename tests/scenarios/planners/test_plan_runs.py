"""The first plan of a search is a graph that runs: its step has the loss of the same step on one device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partita.actors import open_session
from partita.devices import machines_of
from partita.scenarios import LlamaModel, ModelDescription, MoeModel, Split
from partita.scenarios.planners import search
from partita.scenarios.workloads.model_building import build_model

LENGTH, BATCH = 16, 16
SIZES: dict[str, Any] = {  # fields differ in type
    "layers": 4,
    "hidden": 64,
    "heads": 4,
    "intermediate": 128,
    "vocabulary": 96,
    "pad_vocabulary": 8,
}
MODELS = {
    "llama": LlamaModel(**SIZES, kv_heads=2),
    "moe": MoeModel(**SIZES, kv_heads=2, experts=4, topk=2, expert_intermediate=64),
}


async def loss(model: ModelDescription, split: Split) -> float:
    """Of one step on random tokens, from the initial values that the names of weights give."""
    step = build_model(model, split, f"cpu:{split.devices}", sequence_length=LENGTH)
    rng = np.random.default_rng(5)
    tokens, labels = (rng.integers(0, SIZES["vocabulary"], (BATCH, LENGTH), dtype=np.int32) for _ in range(2))
    async with open_session(step.graph, f"cpu:{split.devices}") as session:
        await session.run([], targets=step.initialise)
        (value,) = await session.run(step.fetches, step.feed(tokens=tokens, labels=labels), targets=step.targets)
    return float(value)


@pytest.mark.parametrize(("name", "fixed"), [("llama", ""), ("llama", "tp=2,pp=2"), ("moe", "zero=1,recompute=full")])
async def test_the_first_plan_runs_with_values(name: str, fixed: str) -> None:
    """In the precision of the plan; sums of narrow products differ in their last bits."""
    model = MODELS[name]
    plan = search(model, machines_of("A100-80GB:8"), global_batch=BATCH, sequence_length=LENGTH, split=fixed, top=1)
    (best,) = plan.plans
    assert best.split.devices == 8
    whole = Split(microbatch=BATCH, precision=best.precision)
    np.testing.assert_allclose(await loss(model, best.split), await loss(model, whole), rtol=5e-3)
