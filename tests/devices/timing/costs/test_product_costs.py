"""Costs of single products in serving: every type, measured and unmeasured GPUs, and what is refused."""

from __future__ import annotations

import pytest

from partita.devices import Calibration, OpCost, device_spec, product_cost
from partita.devices.timing.costs.product_costs import PRODUCT_DTYPES
from partita.devices.timing.costs.source import UnknownCost
from partita.errors import InvalidArgumentError


def cost(device: str, dtype: str, m: int = 64, n: int = 4096, k: int = 4096) -> OpCost:
    """By the catalog's fits."""
    return product_cost(device_spec(device), m=m, n=n, k=k, dtype=dtype)


MEASURED = {
    "A100-80GB": ("bf16", "int8", "int8_weights", "int4_weights"),
    "B200-SXM": ("bf16", "fp8", "fp8_block", "nvfp4"),
    "H100-SXM": ("bf16", "fp8", "fp8_block"),
    "B60": ("bf16", "fp8"),
}


@pytest.mark.parametrize("device", MEASURED)
def test_measured_types_are_fitted(device: str) -> None:
    """Within their interval, with the operations and at least the bytes of the weights; never below a floor."""
    for dtype in MEASURED[device]:
        said, tiny = cost(device, dtype), cost(device, dtype, 1, 32, 32)
        assert said.provenance == "fitted"
        assert said.low_ns is not None
        assert said.high_ns is not None
        assert said.low_ns < said.time_ns < said.high_ns
        assert said.flops == 2 * 64 * 4096 * 4096
        assert said.bytes >= 4096 * 4096 / 2
        assert 1000 < tiny.time_ns <= said.time_ns


@pytest.mark.parametrize("dtype", PRODUCT_DTYPES)
def test_other_gpus_are_transferred_to(dtype: str) -> None:
    """With a wider interval than where it was measured, and longer where memory is slower."""
    said, near = cost("B300-SXM", dtype), cost("GB300", dtype)
    assert said.provenance == near.provenance == "transferred"
    assert said.low_ns is not None
    assert said.high_ns is not None
    assert said.low_ns < said.time_ns < said.high_ns


def test_narrow_weights_are_read_faster() -> None:
    """Of a product that its weights bound: 8 tokens by weights of 8192 x 28672."""
    sizes = (8, 28672, 8192)
    assert cost("A100-80GB", "int4_weights", *sizes).time_ns < cost("A100-80GB", "int8_weights", *sizes).time_ns
    assert cost("B200-SXM", "nvfp4", *sizes).time_ns < cost("B200-SXM", "fp8_block", *sizes).time_ns
    assert cost("B200-SXM", "fp8_block", *sizes).time_ns < cost("B200-SXM", "bf16", *sizes).time_ns


def test_what_there_is_no_model_of_is_refused() -> None:
    """Units that a GPU lacks, a type that nobody knows, sizes below 1, a CPU, a calibration without fits."""
    with pytest.raises(InvalidArgumentError, match=r"A100-80GB has no fp8 units.*it has fp64, fp32, tf32, bf16"):
        cost("A100-80GB", "fp8")
    with pytest.raises(InvalidArgumentError, match="H100-SXM has no fp4 units"):
        cost("H100-SXM", "nvfp4")
    with pytest.raises(InvalidArgumentError, match="dtype 'int3' is not known; it must be one of bf16, fp8"):
        cost("H100-SXM", "int3")
    for dtype in ("bf16", "fp8"):
        with pytest.raises(InvalidArgumentError, match="must be at least 1"):
            cost("H100-SXM", dtype, m=0)
        with pytest.raises(UnknownCost, match="generic-cpu is a CPU"):
            cost("generic-cpu", dtype)
        with pytest.raises(UnknownCost, match="no device of the calibration has a fit"):
            product_cost(device_spec("H100-SXM"), m=64, n=64, k=64, dtype=dtype, calibration=Calibration())
