"""Grouped products as ops: fitted where such were measured, else transferred; by their bytes with few rows a group."""

from __future__ import annotations

from typing import Any

import pytest

from partita.devices import cut, device_spec, explain, grouped_product_cost, local_cluster, simulate
from partita.devices.timing.costs.fitted import FittedSource
from partita.devices.timing.costs.source import CostRequest, OpCost
from partita.graph import GraphBuilder, gradients
from partita.graph.attrs import decode
from partita.graph.dtypes import DataType
from partita.graph.ops.properties import properties_of
from partita.graph.ops.registry import lookup_op

OP, GRAD = "Partita>GroupedMatMul", "Partita>GroupedMatMulGrad"
GROUPS, K, N = 64, 4096, 3072


def cost(device: str, rows: int, op: str = OP, groups: int = GROUPS, **attrs: Any) -> OpCost:  # Any: attr values
    """Of 64 groups that turn rows of 4096 into rows of 3072, in bf16, by the catalog's fits."""
    known = {name: decode(value) for name, value in lookup_op(op).defaults.items()} | {"T": DataType.BFLOAT16} | attrs
    weights = (groups, N, K) if attrs.get("transpose_b") else (groups, K, N)
    forward = ((rows, K), weights, (groups,)), ((rows, N),)
    inputs, outputs = forward if op == OP else (((rows, K), (rows, N), (groups,)), (weights,))
    return FittedSource().cost(*CostRequest(properties_of(op, known), inputs, outputs, device_spec(device)))


STAGES: dict[str, tuple[str, dict[str, Any], int]] = {
    "fwd": (OP, {}, 4),
    "bwd_grad_act": (OP, {"transpose_b": True}, 4),
    "bwd_grad_w": (GRAD, {}, 1),
}
"""by stage of the fit the op, its attrs, and the bytes of a gradient: it is written, not added to"""


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("device", ["B200-SXM", "H100-SXM", "V100"])
def test_groups_of_many_rows_take_the_time_of_the_layer(device: str, stage: str) -> None:
    """What `grouped_product_cost` says of equal groups."""
    op, attrs, gradient_bytes = STAGES[stage]
    said = cost(device, 1024 * GROUPS, op, **attrs)
    sizes: dict[str, Any] = {"groups": GROUPS, "m": 1024, "n": N, "k": K, "gradient_bytes": gradient_bytes}
    layer = grouped_product_cost(device_spec(device), stage=stage, **sizes)
    least_ns = said.bytes * 1e9 / device_spec(device).achieved_bytes_per_s
    assert said.time_ns == pytest.approx(max(layer.time_ns, least_ns), rel=1e-4)
    assert said.provenance == layer.provenance == ("fitted" if device == "B200-SXM" else "transferred")
    assert said.flops == 2 * 1024 * GROUPS * N * K


def test_few_rows_are_bound_by_the_weights_that_they_need() -> None:
    """One row for each of 64 groups reads all weights, one row in all those of one group: no fit says so."""
    spec = device_spec("H100-SXM")
    for rows in (GROUPS, 1):
        said = cost("H100-SXM", rows)
        moved = 2 * rows * (K + N + K * N) + 4 * GROUPS
        assert said.bytes == moved
        assert said.time_ns == round(moved / (0.8 * spec.memory_bandwidth_bytes_per_s) * 1e9 + 3000)
        assert said.provenance == "assumed"


def test_a_processor_has_the_roofline() -> None:
    """Fits are of GPUs."""
    assert cost("generic-cpu", 1024 * GROUPS).provenance == "roofline"


@pytest.mark.parametrize("device", ["B200-SXM", "H100-SXM", "generic-cpu"])
@pytest.mark.parametrize("op", [OP, GRAD])
def test_the_busiest_has_so_many_more_rows(device: str, op: str) -> None:
    """As an op with these rows, which the shape does not say."""
    more = cost(device, 1024 * GROUPS, op, assumed_imbalance=1.5)
    assert (more.time_ns, more.flops) == (cost(device, 1536 * GROUPS, op)[:2])


def test_a_simulated_layer_of_experts_says_where_its_times_are_from() -> None:
    """Forward and both gradients, on a device without such rows; what explains it names the one that has them."""
    b = GraphBuilder()
    with b.device("/GPU:0"):
        x, w = b.placeholder("x", "bfloat16", (8192, K)), b.placeholder("w", "bfloat16", (8, K, N))
        rows = b.placeholder("rows", "int32", (8,))
        y = b.op(OP, x, w, rows, name="up")[0]
    slopes = [str(name) for name in gradients(b, [y], [x, w])]
    cluster = local_cluster("gpu", gpu="H100-SXM")
    parts = cut(b.graph_def(), cluster, feeds=["x", "w", "rows"], fetches=[y.name, *slopes])
    events = [event for event in simulate(parts, cluster).events if event.op in (OP, GRAD) and event.kind == "compute"]
    assert [event.provenance for event in events] == ["transferred"] * 3
    assert {event.flops for event in events} == {2 * 8192 * K * N}
    told = explain(parts, cluster, "up")[0]
    assert told.cost.provenance == "transferred"
    assert told.assumed[0].startswith("transferred from B200-SXM: such layers were not measured on H100-SXM")
    assert told.inputs["kind"] == "fwd"
