"""Plans and clusters as short texts and in notebooks."""

from __future__ import annotations

import pytest

from partita.devices import local_cluster, parse_cluster
from partita.scenarios import LlamaModel
from partita.scenarios.planners.inference.search import search_inference
from partita.scenarios.planners.searching.search import search
from tests.graph.display.checked_html import checked_texts

MACHINES = parse_cluster('[[host]]\nmodel = "DGX-H100"\njob = "worker"\ntasks = 5')
SMALL = LlamaModel(layers=2, hidden=512, heads=4, kv_heads=4, intermediate=1024, vocabulary=1024)
PLAN = search(SMALL, local_cluster("gpu:4", gpu="H100-SXM"), global_batch=16, sequence_length=128, top=3)
SERVED = search_inference(SMALL, local_cluster("gpu:2", gpu="H100-SXM"), prompt=64, output=16, top=3)


@pytest.mark.parametrize("thing", [PLAN, PLAN.plans[0], SERVED, MACHINES])
def test_a_short_text_is_one_line(thing: object) -> None:
    """Which a list of them stays readable with."""
    assert repr(thing).isprintable()
    assert 10 < len(repr(thing)) < 160


def test_plans_in_a_notebook() -> None:
    """The table of `partita plan`, what was impossible, and what was assumed."""
    told = checked_texts(PLAN._repr_html_())
    assert told.startswith(f"3 of {PLAN.fitting:,} splits that fit, the fastest first#tpppdp")
    assert [text for text in (*PLAN.impossible, *PLAN.assumptions) if text not in told] == []
    first = checked_texts(PLAN.plans[0]._repr_html_())
    assert f"{PLAN.plans[0].step_ms:,.1f} ms" in first
    assert "products" in first
    served = checked_texts(SERVED._repr_html_())
    assert f"{SERVED.plans[0].tokens_per_s:,.0f}" in served


def test_a_cluster_in_a_notebook() -> None:
    """Equal machines are one row."""
    told = checked_texts(MACHINES._repr_html_())
    assert told.startswith("Cluster of 45 devices in 5 machines, joined by 400 Gb InfiniBand (50.0 GB/s a port)")
    assert "5task 0, task 1, task 2, ...1 Xeon-8480+ (CPU, 4.00 TiB), 8 H100-SXM (GPU, 79.65 GiB)" in told
    assert told.endswith("PCIe5 x16 to the host, NVLink4 between GPUs")
    assert repr(MACHINES) == "<Cluster of 45 devices: 40 H100-SXM, 5 Xeon-8480+>"
