"""A device spec refuses impossible numbers, and knows which units compute on which types."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, strategies as st

from partita.devices import DeviceSpec
from partita.devices.catalog import device_spec
from partita.devices.link import LinkSpec
from partita.errors import InvalidArgumentError
from partita.graph.dtypes import DataType, make_ref

SPEC = DeviceSpec("test", "GPU", {"fp32": 1000, "fp64": 500, "fp16": 4000}, 100, 10**6)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("peak_flops_per_s", {"fp64": 1}),
        ("peak_flops_per_s", {"fp32": 0}),
        ("peak_flops_per_s", {"fp32": 1, "fp31": 1}),
        ("memory_bandwidth_bytes_per_s", 0),
        ("memory_bytes", -1),
        ("launch_overhead_ns", -1),
        ("matrix_efficiency", 0.0),
        ("memory_efficiency", 1.5),
        ("host_memory_bytes", -1),
        ("memory_bandwidth_bytes_per_s", float("nan")),
        ("memory_bandwidth_bytes_per_s", 1e12),
        ("memory_bytes", True),
        ("memory_bytes", 10**30),
        ("launch_overhead_ns", 10**30),
        ("peak_flops_per_s", {"fp32": float("inf")}),
        ("peak_flops_per_s", {"fp32": 10**30}),
        ("vector_efficiency", float("nan")),
    ],
)
def test_impossible_numbers_are_refused(field: str, value: Any) -> None:
    """The error names the field."""
    with pytest.raises(InvalidArgumentError, match=field):
        evolve(SPEC, **{field: value})


def test_families() -> None:
    """Products run on the units for the type or the next wider ones; other ops at the fp32 rate."""
    a100 = device_spec("A100-80GB")
    assert a100.family(DataType.FLOAT, matrix=True) == "tf32"
    assert a100.family(make_ref(DataType.BFLOAT16), matrix=True) == "bf16"
    assert a100.family(DataType.FLOAT8_E5M2, matrix=True) == "fp16"
    assert a100.family(DataType.INT32, matrix=True) == "fp32"
    assert a100.family(DataType.HALF, matrix=False) == "fp32"
    assert a100.family(DataType.DOUBLE, matrix=False) == "fp64"
    assert SPEC.family(DataType.BFLOAT16, matrix=True) == "fp32"


@given(st.integers(1, 100), st.sampled_from(list(DataType)), st.booleans())
def test_achieved_is_the_share_of_the_peak(percent: int, dtype: DataType, matrix: bool) -> None:
    """Exactly, without rounding the share, and at most the peak."""
    share = percent / 100
    spec = evolve(SPEC, matrix_efficiency=share, vector_efficiency=share, memory_efficiency=share)
    peak = SPEC.peak_flops_per_s[SPEC.family(dtype, matrix=matrix)]
    assert spec.achieved_flops_per_s(dtype, matrix=matrix) == peak * percent // 100
    assert spec.achieved_bytes_per_s == max(1, percent)


def test_specs_can_be_keys() -> None:
    """Equal specs hash alike, although the rates are a dict."""
    assert {SPEC: 1}[evolve(SPEC)] == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("bandwidth_bytes_per_s", 0),
        ("bandwidth_bytes_per_s", float("nan")),
        ("bandwidth_bytes_per_s", 10**30),
        ("latency_ns", -1),
        ("latency_ns", 0.5),
        ("latency_ns", 10**30),
    ],
)
def test_impossible_links_are_refused(field: str, value: Any) -> None:
    """The error names the field."""
    with pytest.raises(InvalidArgumentError, match=field):
        LinkSpec("test", **{"bandwidth_bytes_per_s": 1, "latency_ns": 0, field: value})
