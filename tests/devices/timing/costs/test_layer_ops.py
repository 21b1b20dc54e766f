"""Attention as an op: fitted where such layers were measured, else transferred; by its bytes for a few queries."""

from __future__ import annotations

from typing import Any

import pytest

from partita.devices import attention_cost, cut, device_spec, local_cluster, simulate
from partita.devices.kernels.op_cost import bytes_of, flops_of
from partita.devices.timing import RooflineSource
from partita.devices.timing.costs.fitted import FittedSource
from partita.devices.timing.costs.source import CostRequest, OpCost, context
from partita.graph import GraphBuilder
from partita.graph.attrs import decode
from partita.graph.dtypes import DataType
from partita.graph.gradients import gradients
from partita.graph.ops.properties import properties_of
from partita.graph.ops.registry import lookup_op

OP, GRAD = "Partita>FlashAttention", "Partita>FlashAttentionGrad"
SIZES: dict[str, Any] = {"batch": 2, "seq_len": 4096, "heads": 32, "kv_heads": 8, "qk_head_dim": 128, "v_head_dim": 128}


def attention(device: str, queries: int, keys: int, op: str = OP, **attrs: Any) -> CostRequest:  # Any: attr values
    """Two sequences, 32 heads of 128, 8 of keys, in bf16."""
    known = {name: decode(value) for name, value in lookup_op(op).defaults.items()} | {"T": DataType.BFLOAT16} | attrs
    query, key, rows = (2, queries, 32, 128), (2, keys, 8, 128), (2, 32, queries)
    forward = (query, key, key), (query, rows)
    inputs, outputs = forward if op == OP else ((*forward[0], query, rows, query, rows), forward[0])
    return CostRequest(properties_of(op, known), inputs, outputs, device_spec(device))


def cost(*arguments: Any, **attrs: Any) -> OpCost:  # Any: those of `attention`
    """By the catalog's fits."""
    return FittedSource().cost(*attention(*arguments, **attrs))


@pytest.mark.parametrize(("op", "direction"), [(OP, "fwd"), (GRAD, "bwd")])
@pytest.mark.parametrize("device", ["B200-SXM", "H100-SXM", "V100"])
def test_a_causal_sequence_takes_the_time_of_the_layer(device: str, op: str, direction: str) -> None:
    """What `attention_cost` says, up to the diagonal and a step of the ratio; operations and bytes are the op's."""
    said = cost(device, 4096, 4096, op, causal=True)
    layer = attention_cost(device_spec(device), direction=direction, **SIZES)
    assert said.time_ns == pytest.approx(layer.time_ns, rel=0.02)
    assert said.provenance == layer.provenance == ("fitted" if device == "B200-SXM" else "transferred")
    c = context(*attention(device, 4096, 4096, op, causal=True)[:3])
    assert (said.flops, said.bytes) == (flops_of(c), bytes_of(c))
    assert said.low_ns is not None
    assert said.high_ns is not None
    assert said.low_ns < said.time_ns < said.high_ns


def test_what_is_seen_is_paid() -> None:
    """All pairs take longer than half of them, a window less."""
    every, causal, near = (
        cost("B200-SXM", 8192, 8192, **attrs).time_ns
        for attrs in ({}, {"causal": True}, {"causal": True, "window": 512})
    )
    assert 1.8 < every / causal < 2.05
    assert near < causal / 3


def test_a_few_queries_are_bound_by_the_cache() -> None:
    """A token against a cache: its bytes at the bandwidth of memory-bound ops, on a device with fits of such."""
    c = context(*attention("H100-SXM", 1, 8192)[:3])
    said = cost("H100-SXM", 1, 8192, causal=True, query_offset=8191)
    assert said.time_ns == round(bytes_of(c) / (0.8 * 3.35e12) * 1e9 + 3000)
    assert said.provenance == "assumed"
    assert cost("V100", 1, 8192).provenance == "roofline"


def test_another_type_takes_longer_and_is_less_sure() -> None:
    """float32 runs at the rate of tf32, half that of bf16; fp16 at that of bf16, but it was not measured."""
    half, single = ({"T": DataType.HALF}, {"T": DataType.FLOAT})
    bf16, fp16, tf32 = (cost("B200-SXM", 4096, 4096, causal=True, **attrs) for attrs in ({}, half, single))
    assert (bf16.provenance, fp16.provenance, tf32.provenance) == ("fitted", "transferred", "transferred")
    assert fp16.time_ns == bf16.time_ns
    assert tf32.time_ns == pytest.approx(2 * bf16.time_ns, rel=0.05)
    assert bf16.high_ns is not None
    assert fp16.high_ns is not None
    assert fp16.high_ns > bf16.high_ns


def test_no_time_is_shorter_than_the_bytes_take() -> None:
    """64 queries and keys, and a floor for the kernel; 64 queries of a very long cache."""
    for device in ("B200-SXM", "H100-SXM"):
        spec = device_spec(device)
        for keys in (64, 1 << 22):
            said = cost(device, 64, keys, window=1 << 30)
            assert said.time_ns >= said.bytes / spec.achieved_bytes_per_s * 1e9 + spec.op_overhead_ns - 1


def test_a_simulated_step_takes_these_times() -> None:
    """Forward and backward of a layer on one GPU: operations, provenance and times are those of the source."""
    b = GraphBuilder()
    with b.device("/device:GPU:0"):
        q, k = b.placeholder("q", "bfloat16", (2, 512, 32, 128)), b.placeholder("k", "bfloat16", (2, 512, 8, 128))
        output = b.op("Partita>FlashAttention", q, k, k, causal=True, name="core")[0]
    graph = b.graph()
    (slope,) = gradients(graph, [output.name], [q.name])
    assert slope is not None
    cluster = local_cluster("gpu", gpu="H100-SXM")
    parts = cut(graph.to_graph_def(), cluster, feeds=["q", "k"], fetches=[slope])
    timeline = simulate(parts, cluster)
    events = {event.op: event for event in timeline.events if event.op in (OP, GRAD)}
    for op, event in events.items():
        said = cost("H100-SXM", 512, 512, op, causal=True)
        assert (event.duration_ns, event.flops, event.provenance) == (said.time_ns, said.flops, "transferred")
    assert events.keys() == {OP, GRAD}


def test_a_cpu_computes_by_the_roofline() -> None:
    """The fits are of GPUs."""
    request = attention("generic-cpu", 512, 512)
    assert FittedSource().cost(*request) == RooflineSource().cost(*request)


def test_explain_names_the_donor() -> None:
    """Sizes, numbers with their source, and why the time is less sure."""
    text = FittedSource().explain(*attention("H100-SXM", 4096, 4096, causal=True, T=DataType.HALF)).text()
    for part in (
        "Partita>FlashAttention on H100-SXM",
        "transferred from B200-SXM: such layers were not measured on H100-SXM",
        "seq_len 4096",
        "rate 2.1555e+15 FLOP/s (fitted on B200-SXM, ",
        "another type than bf16, half",
        "datasheet roofline",
    ):
        assert part in text
    own = FittedSource().explain(*attention("B200-SXM", 4096, 4096, causal=True))
    assert own.cost == cost("B200-SXM", 4096, 4096, causal=True)
    assert own.assumed == ("no fusion with other ops",)
    long = FittedSource().explain(*attention("B200-SXM", 1 << 18, 1 << 18, causal=True))
    assert "a size lies outside the fitted range: the interval is wider" in long.assumed
    few = FittedSource().explain(*attention("H100-SXM", 1, 4096)).text()
    assert "operations / matrix rate" in few
    assert "no fit describes a layer of these sizes" in few


def test_together_is_one_by_one() -> None:
    """A batch says what single questions say, with repetitions."""
    batch = [attention("H100-SXM", s, 4096, op) for s in (1, 512) for op in (OP, GRAD)] * 2
    together, single = FittedSource(), FittedSource()
    assert together.costs(batch) == [single.cost(*request) for request in batch]
