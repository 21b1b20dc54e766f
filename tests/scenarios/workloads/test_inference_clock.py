"""Decoding on the clock: at most what reading the weights and the cache allows, and not much less."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from partita.devices import cut, device_spec, local_cluster, simulate
from partita.devices.timing.timeline import Timeline
from partita.scenarios.models.llama import LlamaModel
from partita.scenarios.models.rope import Rope
from partita.scenarios.models.split import Split
from partita.scenarios.workloads.model_building import build_model

SMALL = LlamaModel(4, 256, 8, 512, 1024, kv_heads=4)
CONTEXT, HALF = 8192, 2  # tokens, bytes
LLAMA_3_8B = LlamaModel(32, 4096, 32, 14336, 128256, kv_heads=8, rope=Rope(theta=500000.0))
LEAST = {1: 0.7, 4: 0.7, 16: 0.8, 64: 0.9}
"""by the sequences of a batch, the share of the bound that must be reached"""


def bytes_of_a_token(batch: int) -> int:
    """What is read for one more token of each sequence: all weights but the embeddings, and keys and values."""
    model = LLAMA_3_8B
    weights = HALF * (model.parameters - model.vocabulary * model.hidden)
    return weights + HALF * 2 * model.layers * model.kv_heads * model.head_size * CONTEXT * batch


@cache
def decoded(batch: int) -> Timeline:
    cluster = local_cluster("gpu:1", gpu="H100-SXM")
    split = Split(precision="bfloat16", microbatch=batch)
    step = build_model(LLAMA_3_8B, split, cluster, inference="decode", context=CONTEXT, local_inputs=True)
    return simulate(cut(step.graph, cluster, targets=step.targets), cluster)


@pytest.mark.parametrize("batch", LEAST)
def test_decoding_is_bound_by_memory(batch: int) -> None:
    """Tokens per second never exceed the bandwidth that the device reaches; with larger batches they come near it."""
    bound_ns = bytes_of_a_token(batch) * 1e9 / device_spec("H100-SXM").achieved_bytes_per_s
    assert bound_ns <= decoded(batch).makespan_ns <= bound_ns / LEAST[batch]


def test_a_row_is_written_and_the_cache_is_read_once() -> None:
    """By the bytes of kernels, and by the memory in use: weights and caches are there once."""
    timeline = decoded(4)
    writes = [event for event in timeline.events if event.op == "ResourceStridedSliceAssign" and event.bytes]
    row = HALF * 4 * LLAMA_3_8B.kv_heads * LLAMA_3_8B.head_size
    assert len(writes) == 2 * LLAMA_3_8B.layers
    assert {event.bytes for event in writes} == {2 * row}
    reads = [event.bytes for event in timeline.events if event.op == "Partita>CachedAttention" and event.bytes]
    assert len(reads) == LLAMA_3_8B.layers
    assert row * 2 * CONTEXT < reads[0] < 1.01 * row * 2 * CONTEXT
    weights = HALF * LLAMA_3_8B.parameters
    caches = 2 * LLAMA_3_8B.layers * row * CONTEXT
    peak = timeline.peak_memory_bytes("/job:localhost/replica:0/task:0/device:GPU:0")
    assert weights + caches <= peak < 1.01 * (weights + caches)


def test_a_decode_spread_over_devices_is_simulated_by_representatives() -> None:
    """Weights and caches are cut by tp and pp: less of both for each device, and a step that is shorter."""

    def time_ns(tp: int, pp: int, dp: int = 1) -> int:
        cluster = local_cluster(f"gpu:{tp * pp * dp}", gpu="H100-SXM")
        split = Split(precision="bfloat16", microbatch=16, tp=tp, pp=pp, dp=dp)
        step = build_model(LLAMA_3_8B, split, cluster, inference="decode", context=CONTEXT, representatives=True)
        return simulate(cut(step.graph, cluster, targets=step.targets), cluster).makespan_ns

    one, halves, pipe = time_ns(1, 1), time_ns(2, 1), time_ns(1, 2)
    assert halves < 0.75 * one
    assert one <= pipe < 1.05 * one
    assert time_ns(1, 1, dp=2) == one


@pytest.mark.parametrize("given", [{"inference": "prefill", "sequence_length": 256}, {"inference": "decode"}], ids=str)
@pytest.mark.parametrize("fields", [{"tp": 2, "pp": 2}, {"tp": 2, "dp": 4}, {"pp": 4, "dp": 2}], ids=str)
def test_representatives_take_as_long_as_all_ranks(fields: dict[str, Any], given: dict[str, Any]) -> None:
    """To the nanosecond, for a prefill and a decode."""
    split = Split(precision="bfloat16", microbatch=4, **fields)
    cluster = local_cluster(f"gpu:{split.devices}", gpu="H100-SXM")
    times = set()
    ways: tuple[dict[str, Any], ...] = ({"representatives": True}, {"local_inputs": True})
    for way in ways:
        step = build_model(SMALL, split, cluster, context=512, **given, **way)
        times.add(simulate(cut(step.graph, cluster, targets=step.targets), cluster).makespan_ns)
    assert len(times) == 1
