"""Products in 8-bit floats: timed at the rate of their type, and refused by a run."""

from __future__ import annotations

from typing import Any

import pytest

from partita.actors import BlockingSession
from partita.devices import cut, device_spec, local_cluster, product_cost, simulate
from partita.devices.timing.costs.fitted import FittedSource
from partita.devices.timing.costs.roofline import RooflineSource
from partita.devices.timing.costs.source import CostRequest, CostSource, OpCost
from partita.errors import UnimplementedError
from partita.graph import GraphBuilder, gradients, infer_shapes
from partita.graph.dtypes import DataType
from partita.graph.ops.properties import properties_of

M, K, N = 4096, 2048, 8192
GROUPS = 8


def cost(op: str, device: str, source: CostSource) -> OpCost:
    """Of a product [4096, 2048] x [2048, 8192] of bfloat16 tensors."""
    properties = properties_of(op, {"T": DataType.BFLOAT16, "transpose_a": False, "transpose_b": False})
    return source.cost(*CostRequest(properties, ((M, K), (K, N)), ((M, N),), device_spec(device)))


def test_a_product_takes_its_operations_by_the_rate_of_8_bit_floats() -> None:
    """By the roofline of an H100, which has twice the rate of bfloat16 for them."""
    spec = device_spec("H100-SXM")
    said = cost("Partita>Float8MatMul", "H100-SXM", RooflineSource())
    rate = spec.peak_flops_per_s["fp8"] * spec.matrix_efficiency
    assert said.flops == 2 * M * K * N
    assert said.time_ns == pytest.approx(said.flops / rate * 1e9 + spec.op_overhead_ns, abs=1)
    wide = cost("MatMul", "H100-SXM", RooflineSource())
    ratio = (wide.time_ns - spec.op_overhead_ns) / (said.time_ns - spec.op_overhead_ns)
    assert ratio == pytest.approx(spec.peak_flops_per_s["fp8"] / spec.peak_flops_per_s["bf16"], rel=1e-4)


def test_factors_have_a_byte_an_element_and_the_product_its_own_type() -> None:
    """What is read and written."""
    assert cost("Partita>Float8MatMul", "H100-SXM", RooflineSource()).bytes == M * K + K * N + 2 * M * N


@pytest.mark.parametrize("device", ["H100-SXM", "B200-SXM"])
def test_the_time_is_that_of_measured_products(device: str) -> None:
    """Of fp8 with the input quantised, between half and all of that of bfloat16; operations and bytes are the op's."""
    narrow, wide = (cost(op, device, FittedSource()) for op in ("Partita>Float8MatMul", "MatMul"))
    said = product_cost(device_spec(device), m=M, n=N, k=K, dtype="fp8")
    assert narrow.provenance == said.provenance == "fitted"
    assert narrow.time_ns == pytest.approx(said.time_ns, abs=1)
    assert (narrow.flops, narrow.bytes) == cost("Partita>Float8MatMul", device, RooflineSource())[1:3]
    assert 0.45 * wide.time_ns < narrow.time_ns < 0.8 * wide.time_ns


def test_without_measured_ones_products_in_bfloat16_are_scaled_by_the_rates() -> None:
    """On an A100, which has no such units: half precision, and nothing that was fitted to fp8."""
    narrow, wide = (cost(op, "A100-80GB", FittedSource()) for op in ("Partita>Float8MatMul", "MatMul"))
    assert narrow.provenance == "transferred"
    assert 0.8 * wide.time_ns < narrow.time_ns < 1.1 * wide.time_ns


def test_a_device_without_such_units_computes_in_half_precision() -> None:
    """The next wider type that an A100 has."""
    narrow, wide = (cost(op, "A100-80GB", RooflineSource()) for op in ("Partita>Float8MatMul", "MatMul"))
    assert narrow.time_ns == wide.time_ns


def _grouped(op: str, **attrs: Any) -> GraphBuilder:  # Any: attr values
    b = GraphBuilder()
    x = b.placeholder("x", "bfloat16", (8192, 1024))
    weights = b.placeholder("weights", "bfloat16", (GROUPS, 1024, 4096))
    sizes = b.placeholder("sizes", "int32", (GROUPS,))
    with b.device("/GPU:0"):
        y = b.op(op, x, weights, sizes, name="y", **attrs)[0]
        for name, slope in zip(("d_x", "d_weights"), gradients(b, [y], [x, weights]), strict=True):
            b.op("Identity", b.tensor(slope), name=name)
    return b


def test_grouped_products_and_their_gradients_take_half_as_long_as_in_bfloat16() -> None:
    """All three are by the same type: the fit is transferred by the rates."""
    times = []
    for op in ("Partita>Float8GroupedMatMul", "Partita>GroupedMatMul"):
        cluster = local_cluster("gpu", gpu="H100-SXM")
        feeds = ["x", "weights", "sizes"]
        parts = cut(_grouped(op).graph_def(), cluster, feeds=feeds, targets=["y", "d_x", "d_weights"])
        events = simulate(parts, cluster).events
        times.append([event.duration_ns for event in events if "Grouped" in event.op and event.kind == "compute"])
    narrow, wide = times
    assert len(narrow) == len(wide) == 3
    spec = device_spec("H100-SXM")
    ratio = spec.peak_flops_per_s["bf16"] / spec.peak_flops_per_s["fp8"]
    assert [a / b for a, b in zip(narrow, wide, strict=True)] == pytest.approx([ratio] * 3, rel=0.05)


@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)], ids=str)
def test_gradients_are_products_in_8_bit_floats_of_the_right_shapes(turned: tuple[bool, bool]) -> None:
    """Whichever factor is transposed."""
    b = GraphBuilder()
    shapes: list[tuple[int, ...]] = [(3, 2) if turned[0] else (2, 3), (4, 3) if turned[1] else (3, 4)]
    a, c = (b.placeholder(name, "bfloat16", shape) for name, shape in zip("ac", shapes, strict=True))
    y = b.op("Partita>Float8MatMul", a, c, transpose_a=turned[0], transpose_b=turned[1])[0]
    slopes = gradients(b, [y], [a, c])
    graph = b.graph()
    inferred = infer_shapes(graph)
    assert [inferred[b.tensor(slope).node][0] for slope in slopes] == shapes
    assert [node.op for node in graph.op_nodes()].count("Partita>Float8MatMul") == 3


def test_a_run_is_refused_with_what_has_no_values() -> None:
    """One error that says what the op stands for, and what to do."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (2, 2))
    y = b.op("Partita>Float8MatMul", x, x, name="y")[0]
    with BlockingSession(b.graph_def()) as session, pytest.raises(UnimplementedError) as caught:
        session.run([y], {"x": [[1.0, 2.0], [3.0, 4.0]]})
    assert caught.value.message == (
        "'y' stands for products in 8-bit floats (precision \"fp8\"), which have a time on the clock and no values; "
        "simulate this graph, or build it with another precision to run it"
    )
