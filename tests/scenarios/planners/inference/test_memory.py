"""Memory in closed form is that of the graph that is built."""

from __future__ import annotations

from itertools import product

import pytest

from partita.scenarios.models.stage_cut import even_stages
from partita.scenarios.planners.inference.memory import cache_bytes, stage_bytes
from partita.scenarios.planners.inference.passages import ReplicaLayout
from partita.scenarios.planners.inference.rank import Phase
from tests.scenarios.planners.inference.served_models import MODELS, dgx, llama_8b, passages_of, simulated

H100 = dgx()


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        *product(MODELS, (ReplicaLayout(1, 1, 1), ReplicaLayout(4, 2, 1))),
        ("mixtral", ReplicaLayout(2, 1, 2)),
        ("deepseek", ReplicaLayout(2, 1, 2)),
    ],
)
@pytest.mark.parametrize("phase", [Phase("decode", 8, 1, 1024), Phase("prefill", 1, 512, 1024)])
def test_memory_is_that_of_the_graph(name: str, layout: ReplicaLayout, phase: Phase) -> None:
    """Weights, one batch of keys and values, and activations are within 2 % of the simulated peak."""
    model = MODELS[name](4)
    stages, layers = passages_of(model, H100).stages(layout, phase), even_stages(4, layout.pp)
    held = stage_bytes(stages, layers, cache_bytes(model, layout, phase.context, "bfloat16"))
    closed = max(it.weights + it.cache_of_sequence // layout.pp * phase.sequences + it.activations for it in held)
    timeline = simulated(model, H100, layout, phase)
    peak = max(timeline.peak_memory_bytes(device) for device in timeline.devices if "GPU" in device)
    assert closed == pytest.approx(peak, rel=0.02)


def test_keys_and_values_of_llama_8b() -> None:
    """2 * 8 heads * 128 * 2 bytes a token and layer; tp cuts heads, down to one; latent rows have no heads."""
    for tp, heads in ((1, 8), (8, 1), (16, 1)):
        assert cache_bytes(llama_8b(), ReplicaLayout(tp, 1, 1), 1000, "bfloat16") == 2 * heads * 128 * 2 * 1000
    assert cache_bytes(MODELS["deepseek"](4), ReplicaLayout(4, 1, 1), 10, "bfloat16") == (512 + 64) * 2 * 10
