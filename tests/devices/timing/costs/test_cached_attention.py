"""Attention to a cache as an op: the time of the operator in a serving framework, at least its bytes."""

from __future__ import annotations

from typing import Any

import pytest

from partita.devices import decode_attention_cost, device_spec, latent_attention_cost
from partita.devices.timing.costs.fitted import FittedSource
from partita.devices.timing.costs.source import CostRequest
from partita.graph.attrs import decode
from partita.graph.dtypes import DataType
from partita.graph.ops.properties import properties_of
from partita.graph.ops.registry import lookup_op

OP, CONTEXT = "Partita>CachedAttention", 8192


def asked(
    tensors: list[tuple[int, ...]], depth: int, value: int, device: str = "H100-SXM", **attrs: Any
) -> CostRequest:
    """Sixteen sequences, 32 heads."""
    known = {name: decode(text) for name, text in lookup_op(OP).defaults.items()}
    known |= {"T": DataType.BFLOAT16, "N": len(tensors)} | attrs
    return CostRequest(
        properties_of(OP, known), ((16, 32, depth), *tensors, ()), ((16, 32, value),), device_spec(device)
    )


def grouped(**attrs: Any) -> CostRequest:
    """Eight heads of keys and values."""
    return asked([(16, 8, CONTEXT, 128)] * 2, 128, 128, **attrs)


@pytest.mark.parametrize("device", ["H100-SXM", "B300-SXM"])
def test_grouped_heads_take_the_time_of_a_decode(device: str) -> None:
    """Fitted where it was measured, else transferred; never faster than its bytes are read."""
    said = FittedSource().cost(*grouped(device=device))
    spec = device_spec(device)
    layer = decode_attention_cost(spec, batch=16, context=CONTEXT, heads=32, kv_heads=8, head_dim=128)
    assert said.provenance == layer.provenance
    assert said.time_ns == pytest.approx(
        max(layer.time_ns, said.bytes * 1e9 / device_spec(device).achieved_bytes_per_s), rel=0.05
    )
    assert said.low_ns is not None
    assert said.high_ns is not None
    assert said.low_ns < said.time_ns < said.high_ns


def test_latent_rows_take_the_time_of_latent_attention() -> None:
    """One tensor of 576 numbers a row; other widths are priced by their bytes."""
    latent = asked([(16, 1, CONTEXT, 576)], 576, 512, value_size=512)
    layer = latent_attention_cost(device_spec("H100-SXM"), phase="decode", batch=16, tokens=CONTEXT, heads=32)
    assert FittedSource().cost(*latent).time_ns == pytest.approx(layer.time_ns, rel=0.02)
    other = asked([(16, 1, CONTEXT, 320)], 320, 256, value_size=256)
    assert FittedSource().cost(*other).provenance == "assumed"


def test_other_types_are_priced_by_their_bytes() -> None:
    """Rows of float32 were not measured; a window is."""
    assert FittedSource().cost(*grouped(T=DataType.FLOAT)).provenance == "assumed"
    assert FittedSource().cost(*grouped(window=128)).time_ns < FittedSource().cost(*grouped()).time_ns / 4


def test_explain_says_what_the_operator_holds() -> None:
    """Fitted numbers, near rows, and that positions and the cache's write are in it."""
    text = FittedSource().explain(*grouped()).text()
    assert "the measured operator embeds positions and writes the cache too" in text
    assert "the nearest on H100-SXM: dtype bf16, cache bf16" in text
    assert "walk" in text
    assert "transferred from" in FittedSource().explain(*grouped(device="B300-SXM")).text()
