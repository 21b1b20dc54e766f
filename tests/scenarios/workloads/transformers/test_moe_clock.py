"""Steps of experts on the clock, where no router decides: ranks get their share of rows, or `imbalance` times that."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from partita.devices import cut, simulate
from partita.devices.timing.timeline import Timeline
from partita.graph.parallel.mesh.write_out import prefix_of
from partita.scenarios.models.moe import LatentAttention, MoeModel
from partita.scenarios.models.split import Split
from partita.scenarios.workloads.model_building import build_model

MODEL = MoeModel(
    *(2, 64, 4, 128, 256),
    experts=8,
    topk=2,
    expert_intermediate=32,
    shared_intermediate=32,
    dense_layers=1,
    router="sigmoid",
    router_bias=True,
    latent=LatentAttention(kv_rank=16, q_rank=24, nope_size=16, rope_size=8, value_size=16),
)
SEQUENCE = 64


@cache
def step(fused: bool, imbalance: float, **fields: Any) -> Timeline:  # Any: fields of a split
    split = Split(microbatch=1, **fields)
    cluster = f"gpu:{split.devices}"
    built = build_model(MODEL, split, cluster, sequence_length=SEQUENCE, fused=fused, imbalance=imbalance)
    fetches = [f"{prefix_of(rank)}{name}" for rank in range(split.devices) for name in built.fetches]
    feeds = list(built.feeds)
    return simulate(cut(built.graph, cluster, feeds=feeds, fetches=fetches, targets=built.targets), cluster)


@pytest.mark.parametrize("fused", [True, False], ids=["fused", "spelled"])
@pytest.mark.parametrize("fields", [{}, {"dp": 2, "ep": 2}, {"dp": 2, "ep": 2, "tp": 2}], ids=str)
def test_a_training_step_has_known_sizes(fields: dict[str, Any], fused: bool) -> None:
    """Forwards and backwards, with what was assumed among the assumptions."""
    timeline = step(fused, 1.0, **fields)
    assert timeline.makespan_ns > 0
    assumed = {entry.value for entry in timeline.assumed if "/experts/received" in entry.node}
    rows = SEQUENCE * MODEL.topk // fields.get("tp", 1)
    assert not assumed - {(rows, MODEL.hidden), (rows,)}
    assert bool(assumed) == ("ep" in fields)


@pytest.mark.parametrize("fused", [True, False], ids=["fused", "spelled"])
def test_the_busiest_rank_makes_the_step_longer(fused: bool) -> None:
    """By its products, and by what it gets and sends back."""
    balanced, busy = (step(fused, imbalance, dp=2, ep=2) for imbalance in (1.0, 1.75))

    def time(timeline: Timeline, op: str) -> int:
        return sum(event.duration_ns for event in timeline.events if event.op == op and "experts" in event.node)

    op = "Partita>GroupedMatMul" if fused else "MatMul"
    for name in (op, "Partita>AllToAllV"):
        assert time(busy, name) > time(balanced, name)
    assert busy.makespan_ns > balanced.makespan_ns
    rows = {entry.value for entry in busy.assumed if entry.node == "layer_1/feed_forward/experts/received"}
    assert rows == {(SEQUENCE * MODEL.topk * 7 // 4, MODEL.hidden)}


def test_no_rank_gets_more_than_all_rows() -> None:
    """Two ranks send as many together."""
    timeline = step(True, 100.0, dp=2, ep=2)
    rows = {entry.value for entry in timeline.assumed if entry.node == "layer_1/feed_forward/experts/received"}
    assert rows == {(SEQUENCE * MODEL.topk * 2, MODEL.hidden)}


def test_a_step_says_what_the_clock_assumes_of_its_routers() -> None:
    """A step without experts assumes nothing."""
    (sentence,) = build_model(MODEL, Split(), "cpu:1", sequence_length=4, imbalance=1.25).assumptions
    assert "each expert gets tokens * 2 / 8 rows, those of the busiest rank 1.25 times as many" in sentence
    dense = MoeModel(*(1, 8, 2, 8, 16), experts=2, topk=1, expert_intermediate=4, dense_layers=1)
    assert build_model(dense, Split(), "cpu:1", sequence_length=4).assumptions == ()


@pytest.mark.parametrize(
    "fields", [{"dp": 2, "ep": 2}, {"dp": 4, "ep": 2, "tp": 2}, {"dp": 2, "ep": 2, "pp": 2}], ids=str
)
def test_one_rank_stands_for_all(fields: dict[str, Any]) -> None:
    """All ranks are as busy as the busiest, so a step of representatives takes as long as one that is written out."""
    split, times = Split(microbatches=2, sequence_parallel=True, **fields), []
    cluster = f"gpu:{split.devices}"
    for representatives in (False, True):
        step = build_model(
            *(MODEL, split, cluster),
            sequence_length=SEQUENCE,
            local_inputs=True,
            representatives=representatives,
            imbalance=1.5,
        )
        parts = cut(step.graph, cluster, feeds=list(step.feeds), fetches=step.fetches, targets=step.targets)
        times.append(simulate(parts, cluster).makespan_ns)
    assert times[0] == times[1] > 0


@pytest.mark.parametrize(
    "fields",
    [
        {"dp": 2, "recompute": "none"},
        {"dp": 4, "ep": 4, "recompute": "selective"},
        {"tp": 2, "dp": 2, "recompute": "selective", "overlap": ("dp", "ep")},
    ],
    ids=str,
)
def test_interleaved_stages_have_known_sizes(fields: dict[str, Any]) -> None:
    """Each computes the gradients of its own layers, where the numbers of rows are known."""
    split = Split(pp=2, interleave=2, microbatches=2, **fields)
    cluster = f"gpu:{split.devices}"
    model = MoeModel(4, 64, 8, 128, 256, kv_heads=8, experts=8, topk=2, expert_intermediate=64)
    step = build_model(model, split, cluster, sequence_length=SEQUENCE, representatives=True)
    assert simulate(cut(step.graph, cluster, targets=step.targets), cluster).makespan_ns > 0


@pytest.mark.parametrize("recompute", ["full", "products", "selective"])
def test_what_is_computed_again_has_known_sizes(recompute: Any) -> None:
    """Also in the calls of a pipeline, which get numbers of rows as arguments."""
    split = Split(dp=2, ep=2, pp=2, microbatches=2, recompute=recompute)
    step = build_model(MODEL, split, "gpu:4", sequence_length=SEQUENCE, local_inputs=True)
    parts = cut(step.graph, "gpu:4", feeds=list(step.feeds), fetches=step.fetches, targets=step.targets)
    assert simulate(parts, "gpu:4").makespan_ns > 0
