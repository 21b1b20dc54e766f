"""The roofline, and TensorFlow's static estimates."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from partita.devices.catalog import device_spec
from partita.devices.timing import RooflineSource
from partita.devices.timing.cost_source import ceil_ns, computation_time_estimate, copy_time_estimate
from partita.graph.dtypes import DataType
from partita.graph.ops.properties import properties_of

from .steps import spec

MATMUL = properties_of("MatMul", {"T": DataType.FLOAT})
NEG = properties_of("Neg", {"T": DataType.FLOAT})
rates = st.integers(1, 10**15)


@given(st.integers(0, 10**21), rates)
def test_times_are_rounded_up_exactly(amount: int, rate: int) -> None:
    """In integers, however large the amount."""
    assert ceil_ns(amount, rate) == ceil(Fraction(amount * 10**9, rate))


@given(st.integers(1, 100), st.integers(1, 100), st.integers(1, 100), rates, rates, st.integers(0, 10**4))
def test_roofline(m: int, k: int, n: int, flops: int, memory: int, overhead_ns: int) -> None:
    """The slower of arithmetic and memory, and the launch."""
    device = spec(flops=flops, memory=memory, overhead_ns=overhead_ns)
    cost = RooflineSource().cost(MATMUL, ((m, k), (k, n)), ((m, n),), device)
    assert (cost.flops, cost.bytes) == (2 * m * k * n, 4 * (m * k + k * n + m * n))
    assert cost.time_ns == max(ceil_ns(cost.flops, flops), ceil_ns(cost.bytes, memory)) + overhead_ns
    assert cost.provenance == "roofline"


@given(st.integers(1, 10**4), rates, rates, st.integers(1, 50))
def test_faster_hardware_is_never_slower(elements: int, flops: int, memory: int, factor: int) -> None:
    """Nor are fewer elements."""
    slow, source = spec(flops=flops, memory=memory), RooflineSource()
    cost = source.cost(NEG, ((elements,),), ((elements,),), slow).time_ns
    assert source.cost(NEG, ((elements,),), ((elements,),), spec(flops=flops * factor, memory=memory)).time_ns <= cost
    assert source.cost(NEG, ((elements,),), ((elements,),), spec(flops=flops, memory=memory * factor)).time_ns <= cost
    assert source.cost(NEG, ((elements * factor,),), ((elements * factor,),), slow).time_ns >= cost


def test_a_source_keeps_devices_apart() -> None:
    """One source asked about two devices answers each correctly, also the second time."""
    source, slow = RooflineSource(), spec()
    fast = evolve(slow, peak_flops_per_s={"fp32": 10**12}, memory_bandwidth_bytes_per_s=10**12)
    shapes = ((100, 100), (100, 100)), ((100, 100),)
    times = [source.cost(MATMUL, *shapes, device).time_ns for device in (slow, fast, slow, fast)]
    assert times == [2_000_000, 2_000, 2_000_000, 2_000]


def test_the_types_of_the_data_decide_the_rate() -> None:
    """Gradients of convolutions have sizes as first input: the rate is that of the images."""
    a100, source = device_spec("A100-80GB"), RooflineSource()
    gradient = properties_of("Conv2DBackpropInput", {"T": DataType.HALF, "strides": (1, 1, 1, 1), "padding": b"SAME"})
    shapes = ((4,), (3, 3, 64, 64), (8, 56, 56, 64)), ((8, 56, 56, 64),)
    assert "fp16, from half" in source.explain(gradient, *shapes, a100)


def test_explain_shows_formula_numbers_and_source() -> None:
    """One line."""
    text = RooflineSource().explain(MATMUL, ((2, 3), (3, 4)), ((2, 4),), spec(overhead_ns=5))
    assert text == (
        "MatMul on test: 109 ns = max(48 operations / 1000000000 per s (fp32, from float), "
        "104 bytes / 1000000000 per s) + 5 ns launch; roofline"
    )
    const = properties_of("NoOp", {})
    assert RooflineSource().explain(const, (), (), spec()) == "NoOp: 0 ns: it only passes tensors on"


@pytest.mark.parametrize(
    ("size_bytes", "latency_ms", "gbps", "micros"),
    [(10_000_000, 10, 1000, 10_080), (10_000_000, 10, 100, 10_800), (10_000_000, 10, 10, 18_000), (999, 0, 8, 0)],
)
def test_copy_time_estimate(size_bytes: int, latency_ms: float, gbps: float, micros: int) -> None:
    """bytes / (gbps * 125) + latency, cut to whole microseconds."""
    assert copy_time_estimate(size_bytes, latency_ms, gbps) == micros


@pytest.mark.parametrize(("operations", "micros"), [(0, 0), (999, 0), (1000, 1), (1_999_999, 1999), (-1500, -1)])
def test_computation_time_estimate(operations: int, micros: int) -> None:
    """A thousand operations a microsecond, cut towards zero."""
    assert computation_time_estimate(operations) == micros


def test_a_delay_takes_what_it_says_besides_what_moving_its_tensor_takes() -> None:
    """On any device."""
    node = properties_of("Delay", {"T": DataType.FLOAT, "micros": 7})
    for device in (spec(), spec(flops=10**15, memory=10**15)):
        source, plain = RooflineSource(), RooflineSource().cost(NEG, ((3,),), ((3,),), device)
        assert source.cost(node, ((3,),), ((3,),), device).time_ns == plain.time_ns + 7000
        assert "7000 ns waiting" in source.explain(node, ((3,),), ((3,),), device)
