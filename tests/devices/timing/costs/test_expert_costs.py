"""Costs of expert layers: measured and unmeasured GPUs, kernels and routings, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from partita.devices import Calibration, OpCost, device_spec, expert_layer_cost, grouped_product_cost
from partita.devices.timing.costs.source import UnknownCost
from partita.errors import InvalidArgumentError

SIZES: dict[str, Any] = {"tokens": 64, "hidden": 4096, "intermediate": 1536, "experts": 128, "top_k": 8}


def cost(device: str, dtype: str = "bf16", **changed: Any) -> OpCost:  # Any: sizes and settings
    """By the catalog's fits, some settings changed."""
    return expert_layer_cost(device_spec(device), dtype=dtype, **{**SIZES, **changed})


@pytest.mark.parametrize(
    ("device", "dtype"),
    [("A100-80GB", "bf16"), ("H100-SXM", "fp8_block"), ("B200-SXM", "nvfp4"), ("GB200", "w4a8_mxfp4_mxfp8")],
)
def test_measured_layers_are_fitted(device: str, dtype: str) -> None:
    """Longer than the weights of their active experts take at the memory's bandwidth."""
    said = cost(device, dtype)
    assert said.provenance == "fitted"
    assert said.low_ns is not None
    assert said.high_ns is not None
    assert said.low_ns < said.time_ns < said.high_ns
    assert said.time_ns > 0.8 * said.bytes * 1e9 / device_spec(device).memory_bandwidth_bytes_per_s


@pytest.mark.parametrize("dtype", ["bf16", "fp8", "fp8_block", "nvfp4", "w4a16_mxfp4", "w4a8_mxfp4_mxfp8"])
def test_other_gpus_are_transferred_to(dtype: str) -> None:
    """B300 from those that were measured, near to what a B200 takes."""
    said, near = cost("B300-SXM", dtype), cost("B200-SXM", dtype)
    assert said.provenance == "transferred"
    assert near.provenance == "fitted"
    assert 0.7 < said.time_ns / near.time_ns < 1.4


def test_the_kernel_is_the_one_that_was_measured() -> None:
    """In blocks of fp8 DeepGEMM on B200 and what is like it, Triton on RTX PRO 6000, the default one on Hopper."""
    for device, kernel in (
        ("B200-SXM", "deepgemm"),
        ("B300-SXM", "deepgemm"),
        ("RTX-PRO-6000", "triton"),
        ("H100-SXM", "default"),
    ):
        assert cost(device, "fp8_block") == cost(device, "fp8_block", kernel=kernel)
    assert cost("B200-SXM", "nvfp4") == cost("B200-SXM", "nvfp4", kernel="default")
    assert cost("B200-SXM", "nvfp4", kernel="min_latency").time_ns != cost("B200-SXM", "nvfp4").time_ns


def test_splits_shorten_a_layer_and_skew_lengthens_it() -> None:
    """Of many tokens: by GPUs, by parts of experts, by an exponent, without a gate."""
    whole = cost("H100-SXM", tokens=4096)
    spread = cost("H100-SXM", tokens=4096, ep=16)
    assert spread.time_ns < whole.time_ns / 4
    assert cost("H100-SXM", tokens=4096, tp=4).time_ns < whole.time_ns
    assert cost("H100-SXM", tokens=4096, gated=False).time_ns < whole.time_ns
    assert cost("H100-SXM", tokens=4096, ep=16, skew=1.2).time_ns > 1.5 * spread.time_ns


def test_a_grouped_product_is_something_else() -> None:
    """One launch of training, by a fit of its own."""
    one = grouped_product_cost(device_spec("B200-SXM"), groups=128, m=512, n=3072, k=4096, stage="fwd")
    assert one.flops == 2 * 128 * 512 * 3072 * 4096


def test_what_there_is_no_model_of_is_refused() -> None:
    """Units that a GPU lacks, types, kernels and routings that nobody knows, splits that do not divide, a CPU."""
    for match, device, changed in (
        ("A100-80GB has no fp8 units.*it has fp64", "A100-80GB", {"dtype": "fp8"}),
        ("dtype 'int4' is not known; it must be one of bf16", "H100-SXM", {"dtype": "int4"}),
        ("kernel 'fast' is not known; it must be one of default", "H100-SXM", {"kernel": "fast"}),
        ("experts = 128 must be a multiple of ep = 3", "H100-SXM", {"ep": 3}),
        ("top_k = 200 must be at most experts = 128", "H100-SXM", {"top_k": 200}),
        ("skew = -1 must be an exponent", "H100-SXM", {"skew": -1}),
        ("tokens = 0 must be at least 1", "H100-SXM", {"tokens": 0}),
    ):
        with pytest.raises(InvalidArgumentError, match=match):
            cost(device, **changed)
    with pytest.raises(UnknownCost, match="generic-cpu is a CPU"):
        cost("generic-cpu")
    with pytest.raises(UnknownCost, match="no device of the calibration has a fit of expert layers for 'bf16/triton'"):
        cost("H100-SXM", kernel="triton")
    with pytest.raises(UnknownCost, match="no device of the calibration has a fit"):
        cost("H100-SXM", calibration=Calibration())
