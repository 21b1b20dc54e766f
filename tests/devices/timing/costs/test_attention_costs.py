"""Costs of attention in serving frameworks: measured and other GPUs, what makes one longer, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from partita.devices import OpCost, decode_attention_cost, device_spec, latent_attention_cost, prefill_attention_cost
from partita.devices.timing.costs.source import UnknownCost
from partita.errors import InvalidArgumentError

HEADS: dict[str, Any] = {"heads": 32, "kv_heads": 8, "head_dim": 128}
CASES: dict[str, tuple[Callable[..., OpCost], dict[str, Any]]] = {
    "prefill": (prefill_attention_cost, {"batch": 4, "seq_len": 2048, **HEADS}),
    "encoder": (prefill_attention_cost, {"batch": 4, "seq_len": 1500, **HEADS, "kv_heads": 32, "causal": False}),
    "decode": (decode_attention_cost, {"batch": 64, "context": 4096, **HEADS}),
    "latent prefill": (latent_attention_cost, {"phase": "prefill", "batch": 4, "tokens": 2048, "heads": 16}),
    "latent decode": (latent_attention_cost, {"phase": "decode", "batch": 64, "tokens": 4096, "heads": 16}),
}


def cost(case: str, device: str = "H100-SXM", **changed: Any) -> OpCost:  # Any: sizes and types
    """By the catalog's fits, some arguments changed."""
    of, arguments = CASES[case]
    return of(device_spec(device), **{**arguments, **changed})


@pytest.mark.parametrize("case", CASES)
def test_measured_gpus_are_fitted_and_others_transferred_to(case: str) -> None:
    """B300, which nobody measured, is near to B200, with a wider interval."""
    fitted, near = cost(case, "B200-SXM"), cost(case, "B300-SXM")
    assert (fitted.provenance, near.provenance) == ("fitted", "transferred")
    assert 0.8 < near.time_ns / fitted.time_ns < 1.25
    for said in (fitted, near):
        assert said.low_ns is not None
        assert said.high_ns is not None
        assert said.low_ns < said.time_ns < said.high_ns


@pytest.mark.parametrize("case", CASES)
def test_a_kernel_has_a_floor_and_a_peak(case: str) -> None:
    """The smallest run takes some microseconds, a large one at least what the datasheet says."""
    tokens = {"prefill": "seq_len", "encoder": "seq_len", "decode": "context"}.get(case, "tokens")
    least: dict[str, Any] = {"batch": 1, tokens: 1}  # Any: sizes of the case
    assert cost(case, **least).time_ns > 3000
    spec, large = device_spec("H100-SXM"), cost(case)
    assert large.time_ns > 0.8 * large.flops * 1e9 / spec.peak_flops_per_s["bf16"]
    assert large.time_ns > 0.8 * large.bytes * 1e9 / spec.memory_bandwidth_bytes_per_s


def test_a_window_and_a_narrow_cache_save_time() -> None:
    """A query that sees 128 tokens, and a cache of half the bytes."""
    assert cost("prefill", window=128, seq_len=8192).time_ns < cost("prefill", seq_len=8192).time_ns / 2
    assert cost("decode", window=128, head_dim=64).time_ns < cost("decode", head_dim=64).time_ns / 2
    assert cost("decode", cache_dtype="fp8", context=16384).time_ns < 0.7 * cost("decode", context=16384).time_ns
    assert cost("prefill", window=4096) == cost("prefill")


def test_half_counts_as_bf16() -> None:
    """The same kernels; a V100 has no bf16."""
    assert cost("decode", dtype="fp16") == cost("decode")
    assert cost("decode", "V100-SXM2", dtype="fp16").provenance == "transferred"


@pytest.mark.parametrize(
    ("case", "device", "changed", "message"),
    [
        ("prefill", "A100-80GB", {"dtype": "fp8"}, "A100-80GB has no units for 'fp8'; it has .*bf16"),
        ("prefill", "H100-SXM", {"heads": 30}, "heads = 30 must be a multiple of kv_heads = 8"),
        ("prefill", "H100-SXM", {"window": -1}, "window = -1 must be 0"),
        ("prefill", "H100-SXM", {"batch": 0}, "batch = 0 must be at least 1"),
        ("encoder", "H100-SXM", {"kv_heads": 8}, "kv_heads = 8 without causal must be heads = 32"),
        ("encoder", "H100-SXM", {"window": 128}, "neither window nor cache"),
        (
            "latent decode",
            "H100-SXM",
            {"phase": "training"},
            "phase 'training' is not known; it must be one of prefill",
        ),
        ("decode", "H100-SXM", {"cache_dtype": "int8"}, "cache 'int8' is not known; it must be one of bf16, fp8"),
    ],
)
def test_what_cannot_be_is_refused(case: str, device: str, changed: dict[str, Any], message: str) -> None:
    """The error names the argument, or what the GPU has."""
    with pytest.raises(InvalidArgumentError, match=message):
        cost(case, device, **changed)


def test_what_nobody_measured_is_unknown() -> None:
    """fp8 arithmetic in decode, and CPUs."""
    with pytest.raises(UnknownCost, match="for 'fp8/fp8'; there are fits for bf16/bf16, bf16/fp8"):
        cost("decode", dtype="fp8")
    with pytest.raises(UnknownCost, match="decode attention are modelled on GPUs"):
        cost("decode", "EPYC-7763")
