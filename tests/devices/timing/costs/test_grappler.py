"""The Grappler source equals TensorFlow's cost estimator, case by case, and says which device it speaks of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, strategies as st

from partita.devices import DeviceSpec
from partita.devices.catalog import device_names, device_spec
from partita.devices.timing.costs.grappler import GrapplerSource, counts_of, times_ns
from partita.devices.timing.costs.grappler_counts.count import nothing
from partita.devices.timing.costs.grappler_counts.rules import RULES
from partita.devices.timing.costs.grappler_device import GrapplerDevice
from partita.devices.timing.costs.source import context
from partita.errors import InvalidArgumentError
from partita.graph.dtypes import DataType
from partita.graph.ops.properties import properties_of
from partita.graph.ops.registry import lookup_op

from ..steps import spec

Case = dict[str, Any]  # rows of a JSON file
GOLDEN = json.loads((Path(__file__).parent / "data" / "grappler_costs.json").read_text())
MATMUL = properties_of("MatMul", {"T": DataType.FLOAT})
rates = st.integers(1, 10**6)
COMPARED = 1623


def properties(case: Case) -> Any:
    """Properties of a case's node: types are names in the file."""
    declared = lookup_op(case["op"]).attrs

    def decoded(name: str, value: Any) -> Any:
        if declared[name].type == "list(type)":
            return tuple(DataType[v.upper()] for v in value)
        return DataType[value.upper()] if declared[name].type == "type" else value

    return properties_of(case["op"], {name: decoded(name, value) for name, value in case["attrs"].items()})


def shapes(tensors: list[list[Any]]) -> tuple[tuple[int, ...], ...]:
    """The shapes of tensors of the file."""
    return tuple(tuple(shape) for _, shape in tensors)


def device(numbers: dict[str, Any]) -> GrapplerDevice:
    """The device of the file with those numbers."""
    return GrapplerDevice(
        numbers["type"],
        frequency_mhz=numbers["frequency"],
        num_cores=numbers["num_cores"],
        bandwidth_kb_per_s=numbers["bandwidth"],
        architecture=numbers["architecture"],
    )


def test_every_cost_equals_tensorflows() -> None:
    """Total, arithmetic and memory traffic, in microseconds, on three devices."""
    compared, different = 0, []
    for name, numbers in GOLDEN["devices"].items():
        source = GrapplerSource(device(numbers))
        for case in GOLDEN["cases"]:
            node, inputs, outputs = properties(case), shapes(case["inputs"]), shapes(case["outputs"])
            cost = source.cost(node, inputs, outputs, spec())
            count, provenance = counts_of(context(node, inputs, outputs))
            ours = [cost.time_ns, *(ns // 1000 * 1000 for ns in times_ns(count, device(numbers)))]
            compared += 1
            if [us * 1000 for us in case["us"][name]] != ours or provenance != "grappler":
                different.append(f"{case} on {name}: {ours}, {provenance}")
    assert not different, f"{len(different)} differ\n" + "\n".join(different[:20])
    assert compared == 3 * len(GOLDEN["cases"]) == COMPARED


def test_every_op_with_a_formula_has_a_case() -> None:
    """Of all rules but those of ops that cost nothing; of a Where, TensorFlow never knows the output."""
    covered = {case["op"] for case in GOLDEN["cases"]}
    assert {op for op, rule in RULES.items() if rule is not nothing} - covered == {"Where"}


@given(rates, st.integers(1, 64), rates, st.integers(1, 300), st.integers(1, 300), st.integers(1, 300))
def test_compute_and_memory_are_added_and_cut_to_microseconds(
    mhz: int, cores: int, kb_per_s: int, m: int, k: int, n: int
) -> None:
    """Never below the exact sum by a microsecond or more, never above it by more than what rounding up adds."""
    source = GrapplerSource(GrapplerDevice("CPU", frequency_mhz=mhz, num_cores=cores, bandwidth_kb_per_s=kb_per_s))
    cost = source.cost(MATMUL, ((m, k), (k, n)), ((m, n),), spec())
    exact = 2 * m * k * n * 1000 / (mhz * cores) + 4 * (m * k + k * n + m * n) * 1e6 / kb_per_s
    assert cost.time_ns % 1000 == 0
    assert exact * (1 - 1e-12) - 1000 < cost.time_ns <= exact * (1 + 1e-12) + 2
    assert (cost.provenance, cost.low_ns, cost.high_ns) == ("grappler", None, None)


@pytest.mark.parametrize("name", device_names())
def test_the_device_of_a_spec_has_its_rates(name: str) -> None:
    """Peak fp32 and peak bandwidth, for every model of the catalog; efficiencies do not count."""
    model = device_spec(name)
    numbers = GrapplerDevice.of_spec(model)
    assert numbers.gigaops == pytest.approx(model.peak_flops_per_s["fp32"] / 1e9, rel=1e-9)
    assert numbers.gb_per_s == pytest.approx(model.memory_bandwidth_bytes_per_s / 1e9, rel=1e-9)
    assert GrapplerDevice.of_spec(evolve(model, matrix_efficiency=0.5, memory_efficiency=0.5)) == numbers
    assert GrapplerDevice.of_spec(evolve(model, lanes=2)).gigaops == pytest.approx(numbers.gigaops / 2, rel=1e-3)


@pytest.mark.parametrize(
    ("device_type", "architecture", "bandwidth", "gigaops", "gb_per_s"),
    [
        ("CPU", None, 0, 112.0, 32.0),
        ("CPU", "7", 5_000_000, 112.0, 5.0),
        ("GPU", "2.0", 0, 7168.0, 100.0),
        ("GPU", "3.7", 240_000_000, 43008.0, 240.0),
        ("GPU", "5.2", 0, 28672.0, 100.0),
        ("GPU", "6.0", 0, 14336.0, 100.0),
        ("GPU", "9.0", 0, 14336.0, 100.0),
        ("GPU", "10.0", 0, 7168.0, 100.0),
        ("GPU", None, 9_000_000, 100.0, 12.0),
        ("TPU", None, 9_000_000, 1.0, 12.0),
    ],
)
def test_rates_of_a_device(
    device_type: str, architecture: str | None, bandwidth: int, gigaops: float, gb_per_s: float
) -> None:
    """What TensorFlow's EstimatePerformance and costs of a large copy gave for 56 cores of 2 GHz; text is compared."""
    numbers = GrapplerDevice(
        device_type, frequency_mhz=2000, num_cores=56, bandwidth_kb_per_s=bandwidth, architecture=architecture
    )
    assert (numbers.gigaops, numbers.gb_per_s) == (gigaops, gb_per_s)


@pytest.mark.parametrize("field", ["frequency_mhz", "num_cores", "bandwidth_kb_per_s"])
def test_impossible_numbers_are_refused(field: str) -> None:
    """The error names the field."""
    below: Case = {field: -1}
    with pytest.raises(InvalidArgumentError, match=field):
        GrapplerDevice(**below)


def test_shapes_that_do_not_fit_count_bytes_and_say_so() -> None:
    """Sizes may be assumed, and a layout may have no rule."""
    cost = GrapplerSource().cost(MATMUL, ((3,), (3,)), ((3,),), spec())
    assert (cost.flops, cost.bytes, cost.provenance) == (0, 36, "guessed")
    assert "do not fit the rule" in GrapplerSource().explain(MATMUL, ((3,), (3,)), ((3,),), spec()).text()
    attrs = {"T": DataType.QINT8, "ksize": (1, 1, 2, 2), "strides": (1, 1, 2, 2), "padding": "VALID"}
    pool = properties_of("MaxPool", {**attrs, "data_format": "NCHW_VECT_C"})
    assert GrapplerSource().cost(pool, ((2, 3, 8, 8, 4),), ((2, 3, 4, 4, 4),), spec()).provenance == "guessed"


def test_a_source_keeps_devices_apart() -> None:
    """One source asked about two specs answers each correctly, also the second time."""
    source, slow = GrapplerSource(), spec()
    fast = DeviceSpec("fast", "GPU", {"fp32": 10**12}, 10**12, 10**12)
    shapes = ((100, 100), (100, 100)), ((100, 100),)
    assert [source.cost(MATMUL, *shapes, device).time_ns for device in (slow, fast) * 2] == [2_120_000, 2_000] * 2


def test_explain_shows_formula_and_numbers() -> None:
    """The two terms that are added; it says so where the op has no rule."""
    said = GrapplerSource().explain(MATMUL, ((20, 30), (30, 40)), ((20, 40),), spec())
    assert said.text().startswith("MatMul on test: 58.000 us, grappler\n")
    assert said.terms == {"operations": "48000 ns", "bytes": "10400 ns"}
    assert [number.value for number in said.numbers] == ["1 operations per ns", "1 bytes per ns"]
    assert said.null_model == ("datasheet roofline", 48_000)
    softplus = properties_of("Softplus", {"T": DataType.FLOAT})
    assert "no rule for the op" in GrapplerSource().explain(softplus, ((3,),), ((3,),), spec()).text()
