"""The roofline: exact times, faster hardware, and what it says of itself."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

from attrs import evolve
from hypothesis import given, strategies as st

from partita.devices.catalog import device_spec
from partita.devices.cluster import local_cluster
from partita.devices.spec import without_tf32
from partita.devices.timing import RooflineSource
from partita.devices.timing.costs.roofline import FLOOR_NS, HIGH_PERCENT, ceil_ns
from partita.graph.dtypes import DataType
from partita.graph.ops.properties import properties_of

from ..steps import spec

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
    said = source.explain(gradient, *shapes, a100)
    assert (said.numbers[0].name, said.inputs["type"]) == ("fp16 rate", "half")


def test_explain_shows_formula_numbers_and_source() -> None:
    """The numbers with units, the interval, and what is assumed."""
    said = RooflineSource().explain(MATMUL, ((2, 3), (3, 4)), ((2, 4),), spec(overhead_ns=5))
    assert (said.what, said.cost.time_ns, said.inputs["operations"]) == ("MatMul on test", 109, "48")
    text = said.text()
    for part in ("109 ns, roofline", "104", "1e+09 B/s", "launch 5 ns", "four of five", "no fusion"):
        assert part in text
    const = properties_of("NoOp", {})
    assert "tensors are only passed on" in RooflineSource().explain(const, (), (), spec()).text()


def test_a_delay_takes_what_it_says_besides_what_moving_its_tensor_takes() -> None:
    """On any device."""
    node = properties_of("Delay", {"T": DataType.FLOAT, "micros": 7})
    for device in (spec(), spec(flops=10**15, memory=10**15)):
        source, plain = RooflineSource(), RooflineSource().cost(NEG, ((3,),), ((3,),), device)
        assert source.cost(node, ((3,),), ((3,),), device).time_ns == plain.time_ns + 7000
        assert "7000 ns waiting" in source.explain(node, ((3,),), ((3,),), device).text()


def test_tf32_is_a_switch() -> None:
    """Without it a float32 product runs at the rate of fp32; bf16 stays as it is, and so does a device without TF32."""
    on = device_spec("A100-80GB")
    off = without_tf32(on)
    assert off.family(DataType.FLOAT, matrix=True) == "fp32"
    assert off.family(DataType.BFLOAT16, matrix=True) == on.family(DataType.BFLOAT16, matrix=True) == "bf16"
    assert without_tf32(off) is off
    hardware = local_cluster("gpu:2", gpu=on).without_tf32()
    assert {device.spec.family(DataType.FLOAT, matrix=True) for device in hardware} == {"fp32"}


@given(st.integers(1, 10**6), st.integers(0, 10**4))
def test_bounds(elements: int, floor_ns: int) -> None:
    """They enclose the time; a kernel may take a floor that the spec does not give, but not twice."""
    device = evolve(spec(kind="GPU"), kernel_floor_ns=floor_ns)
    cost = RooflineSource().cost(NEG, ((elements,),), ((elements,),), device)
    assert cost.low_ns is not None
    assert cost.high_ns is not None
    assert cost.low_ns <= cost.time_ns <= cost.high_ns
    assert cost.high_ns == -(-cost.time_ns * HIGH_PERCENT // 100) + max(0, FLOOR_NS - floor_ns)
