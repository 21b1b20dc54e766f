"""Steps of precision "fp8": shorter on the clock by their products, and never run."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from partita.actors import BlockingSession
from partita.devices import Cluster, Timeline, cut, local_cluster, simulate
from partita.errors import UnimplementedError
from partita.scenarios.models.llama import LlamaModel
from partita.scenarios.models.moe import LatentAttention, MoeModel
from partita.scenarios.models.split import Split
from partita.scenarios.workloads.model_building import build_model
from partita.scenarios.workloads.model_step import ModelStep

LLAMA = LlamaModel(layers=1, hidden=4096, heads=32, intermediate=11008, vocabulary=1024)
MOE = MoeModel(
    layers=1,
    hidden=512,
    heads=4,
    intermediate=1024,
    vocabulary=1024,
    experts=4,
    topk=2,
    expert_intermediate=1024,
    shared_intermediate=512,
    latent=LatentAttention(kv_rank=128, q_rank=64, nope_size=64, rope_size=32, value_size=64),
)


def _cluster(count: int) -> Cluster:
    return local_cluster(f"gpu:{count}", gpu="H100-SXM")


@cache
def _timeline(precision: str, representatives: bool, is_moe: bool = False) -> Timeline:
    split = Split(tp=2, dp=2, precision=precision)  # type: ignore[arg-type]  # one of the precisions
    cluster, model = _cluster(split.devices), MOE if is_moe else LLAMA
    step = build_model(model, split, cluster, sequence_length=4096, representatives=representatives, local_inputs=True)
    return simulate(cut(step.graph, cluster, targets=step.targets), cluster)


@pytest.mark.parametrize("representatives", [False, True], ids=["written out", "representatives"])
def test_a_step_is_shorter_by_its_products_with_weights(representatives: bool) -> None:
    """Five products of a layer and both gradients of each are in 8 bits; the logits are not."""
    narrow, wide = (_timeline(precision, representatives) for precision in ("fp8", "bfloat16"))
    ops = [event.op for event in narrow.events if event.kind == "compute" and event.device.endswith("GPU:0")]
    assert ops.count("Partita>Float8MatMul") == 3 * 5
    assert ops.count("MatMul") == 3
    assert narrow.makespan_ns < wide.makespan_ns


def test_experts_and_latent_attention_compute_in_8_bits_too() -> None:
    """All products but those of routers and logits."""
    events = [event for event in _timeline("fp8", False, True).events if event.device.endswith("GPU:0")]
    assert {event.op for event in events if "Grouped" in event.op} == {
        "Partita>Float8GroupedMatMul",
        "Partita>Float8GroupedMatMulGrad",
    }
    assert all("logits" in event.node for event in events if event.op == "MatMul")


def test_the_step_says_what_is_assumed() -> None:
    """That rounding is free, and what is not in 8 bits."""
    assert "rounded to 8 bits" in _step("fp8").assumptions[0]
    assert not _step("bfloat16").assumptions


def _step(precision: str) -> ModelStep:
    model = LlamaModel(layers=1, hidden=8, heads=2, intermediate=12, vocabulary=16, pad_vocabulary=1)
    return build_model(model, Split(precision=precision), "cpu:1", sequence_length=4)  # type: ignore[arg-type]


def test_a_run_is_refused() -> None:
    """With one error, that names the precision and the clock."""
    step = _step("fp8")
    tokens = np.zeros((1, 4), np.int32)
    with BlockingSession(step.graph, "cpu:1") as session:
        session.run([], targets=step.initialise)
        with pytest.raises(UnimplementedError, match=r'precision "fp8".*on the clock'):
            session.run(step.fetches, step.feed(tokens=tokens, labels=tokens), targets=step.targets)
