"""`overlap` of a split: communication along an axis hides behind computation if the axis is named, and only then."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from partita.actors import open_session
from partita.devices import Timeline, cut, local_cluster, simulate
from partita.scenarios.models.description import ModelDescription
from partita.scenarios.models.dlrm import DlrmModel
from partita.scenarios.models.llama import LlamaModel
from partita.scenarios.models.moe import MoeModel
from partita.scenarios.models.split import Split
from partita.scenarios.workloads.model_building import build_model
from partita.scenarios.workloads.transformers import network
from partita.scenarios.workloads.transformers.optimizers import OptimizerSettings

LLAMA = LlamaModel(layers=2, hidden=1024, heads=8, intermediate=2816, vocabulary=1024)
EXPERTS = MoeModel(
    layers=2,
    hidden=1024,
    heads=8,
    intermediate=2816,
    vocabulary=1024,
    experts=4,
    topk=2,
    expert_intermediate=1024,
    shared_intermediate=4096,
)
TABLES = DlrmModel(64, (100_000,) * 8, 64, (512, 256, 64), (1024, 512, 1))

CASES: dict[str, tuple[str, ModelDescription, dict[str, Any]]] = {
    "tp": ("tp", LLAMA, {"tp": 2}),
    "tp with sequence parallelism": ("tp", LLAMA, {"tp": 4, "sequence_parallel": True}),
    "tp in calls": ("tp", LLAMA, {"tp": 2, "microbatches": 2}),
    "dp": ("dp", LLAMA, {"dp": 2}),
    "dp in calls": ("dp", LLAMA, {"dp": 2, "microbatches": 2}),
    "dp of stages": ("dp", LLAMA, {"dp": 2, "pp": 2, "microbatches": 4}),
    "ZeRO 1": ("dp", LLAMA, {"dp": 2, "zero": 1}),
    "ZeRO 2 in calls": ("dp", LLAMA, {"dp": 2, "zero": 2, "microbatches": 2}),
    "ZeRO 3": ("dp", LLAMA, {"dp": 2, "zero": 3}),
    "cp as a ring": ("cp", LLAMA, {"cp": 2}),
    "cp by heads, computed again": ("cp", LLAMA, {"cp": 2, "cp_kind": "heads", "recompute": "full"}),
    "tables": ("dp", TABLES, {"dp": 2, "microbatch": 512}),
}


@cache
def played(case: str, overlap: tuple[str, ...]) -> Timeline:
    """The step of a case on H100s."""
    _, model, fields = CASES[case]
    return _timeline(model, Split(precision="bfloat16", overlap=overlap, **fields))


def _timeline(model: ModelDescription, split: Split) -> Timeline:
    cluster = local_cluster(f"gpu:{split.devices}", gpu="H100-SXM")
    length = None if model is TABLES else 2048
    step = build_model(model, split, cluster, sequence_length=length, representatives=True)
    return simulate(cut(step.graph, cluster, targets=step.targets), cluster)


def communication(timeline: Timeline) -> tuple[int, int]:
    """(exposed, hidden) of all devices that were played."""
    devices = {event.device for event in timeline.events if event.kind == "collective"}
    parts = [timeline.communication(device) for device in sorted(devices)]
    return sum(exposed for exposed, _ in parts), sum(hidden for _, hidden in parts)


@pytest.mark.parametrize("case", CASES)
def test_nothing_hides_unless_it_is_named(case: str) -> None:
    """Not for a nanosecond."""
    exposed, hidden = communication(played(case, ()))
    assert exposed > 0
    assert hidden == 0


@pytest.mark.parametrize("case", CASES)
def test_what_is_named_hides_and_the_step_is_no_longer(case: str) -> None:
    """Some of it at least, and less of it is exposed."""
    axis = CASES[case][0]
    before, after = played(case, ()), played(case, (axis,))
    assert communication(after)[1] > 0
    assert communication(after)[0] < communication(before)[0]
    assert after.makespan_ns < before.makespan_ns


def test_experts_are_called_for_while_the_shared_one_computes() -> None:
    """An all-to-all of rows hides behind the products of the expert that all tokens go through."""
    times = {}
    for overlap in ((), ("ep",)):
        timeline = _timeline(EXPERTS, Split(dp=2, ep=2, precision="bfloat16", overlap=overlap))
        device = next(event.device for event in timeline.events if event.device.endswith("GPU:0"))
        events = [event for event in timeline.events if event.device == device]
        exchanges = [event for event in events if event.op == "Partita>AllToAllV"]
        shared = [event for event in events if "/shared/" in event.node and event.kind == "compute"]
        beside = sum(max(0, min(a.end_ns, b.end_ns) - max(a.start_ns, b.start_ns)) for a in exchanges for b in shared)
        times[overlap] = beside, timeline.makespan_ns
    assert times[()][0] == 0
    assert times["ep",][0] > 0
    assert times["ep",][1] < times[()][1]


def test_transfers_of_stages_hide_always() -> None:
    """ "pp" changes nothing."""
    fields: dict[str, Any] = {"pp": 2, "microbatches": 4, "precision": "bfloat16"}
    one, other = (_timeline(LLAMA, Split(overlap=overlap, **fields)) for overlap in ((), ("pp",)))
    assert one.makespan_ns == other.makespan_ns


@pytest.mark.parametrize("rows", [4096, 16384, 32768])
def test_rows_go_in_chunks_where_there_are_many(rows: int) -> None:
    """One for every 8192 rows: so many gathers are in front of the products of a layer."""
    split = Split(tp=2, sequence_parallel=True, precision="bfloat16", overlap=("tp",))
    cluster = local_cluster("gpu:2", gpu="H100-SXM")
    step = build_model(LLAMA, split, cluster, sequence_length=rows, representatives=True)
    gathers = [node.name for node in step.graph.op_nodes() if node.name.startswith("layer_0/feed_forward/gathered")]
    assert len(gathers) == max(1, rows // 8192)


@pytest.mark.parametrize("fields", [{}, {"microbatches": 2, "microbatch": 1}, {"recompute": "full"}], ids=str)
async def test_chunks_change_no_value(monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any]) -> None:
    """Losses of three steps are those of one device."""
    monkeypatch.setattr(network, "ROWS_OF_CHUNK", 4)
    model = LlamaModel(layers=2, hidden=8, heads=4, kv_heads=2, intermediate=12, vocabulary=16, pad_vocabulary=1)
    tokens = np.arange(16, dtype=np.int32).reshape(2, 8)
    losses = []
    for split in (
        Split(microbatch=2, precision="float64"),
        Split(tp=2, sequence_parallel=True, overlap=("tp",), precision="float64", **{"microbatch": 2, **fields}),
    ):
        step = build_model(
            model, split, f"cpu:{split.devices}", sequence_length=8, optimizer=OptimizerSettings(learning_rate=0.05)
        )
        async with open_session(step.graph, f"cpu:{split.devices}") as session:
            await session.run([], targets=step.initialise)
            feeds = step.feed(tokens=tokens, labels=np.roll(tokens, -1, 1))
            runs = [await session.run(step.fetches, feeds, targets=step.targets) for _ in range(3)]
        losses.append([float(loss) for (loss,) in runs])
    one, chunks = losses
    assert chunks == pytest.approx(one, rel=1e-12)
    assert chunks[2] < chunks[0]
