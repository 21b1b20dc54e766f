"""Law 8: a training step that passes made parallel is the one-device step: each pass alone, and any combination.

`python -m tests.laws.parallel --count 300` asks for more combinations.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from partita.graph import replicate
from tests.graph.parallel.running import assert_alike, devices, trained
from tests.graph.parallel.training_models import MODELS, OPTIMIZERS, TrainingModel
from tests.laws.outcomes import DIFFERENT
from tests.laws.parallel.cases import drawn
from tests.laws.parallel.running import outcome

FEEDS = ("whole", "per_replica", "parameters")


@st.composite
def steps(draw: st.DrawFn) -> dict[str, Any]:
    """What a training step is made of."""
    optimizer = draw(st.sampled_from(OPTIMIZERS))
    dtype = draw(st.sampled_from(["float64", "float32", "mixed"]))
    kind = "resource" if optimizer.startswith("keras") else draw(st.sampled_from(["resource", "reference"]))
    return {
        "optimizer": optimizer,
        "dtype": dtype,
        "kind": kind,
        "rows": draw(st.sampled_from([None, 8])),
        "clips": draw(st.booleans()),
        "decays": draw(st.booleans()),
        "scales": dtype == "mixed" or draw(st.booleans()),
        "averages": kind == "resource" and draw(st.booleans()),
        "reduction": draw(st.sampled_from(["mean", "sum"])),
    }


@pytest.mark.parametrize("model", MODELS)
@settings(max_examples=14)
@given(steps(), st.sampled_from([2, 4]), st.sampled_from(FEEDS), st.sampled_from([1, 300, 1 << 20]))
async def test_replicas_learn_what_one_device_does(
    model: str, step: dict[str, Any], count: int, feeds: str, bucket_bytes: int
) -> None:
    """After five steps losses, parameters, slots and averages are those of one device, whatever is reduced where."""
    m = TrainingModel(model, **step)
    graph = m.graph()
    several = replicate(
        graph,
        devices(count),
        batch=["x", "y"],
        loss="loss",
        reduction=step["reduction"],
        feeds="per_replica" if feeds == "per_replica" else "whole",
        parameters="cpu:0" if feeds == "parameters" else None,
        bucket_bytes=bucket_bytes,
    )
    one = await trained(graph, m, "cpu:1")
    parts = count if feeds == "per_replica" else 1
    assert_alike(one, await trained(several, m, f"cpu:{count}", parts=parts), step["dtype"])


@pytest.mark.parametrize("seed", range(40))
async def test_combined_passes_learn_what_one_device_does(seed: int) -> None:
    """Recomputed, pipelined and replicated, sharded or not; every tenth on a virtual clock, as long as simulated."""
    kind, why = await outcome(drawn(seed))
    assert kind != DIFFERENT, why
