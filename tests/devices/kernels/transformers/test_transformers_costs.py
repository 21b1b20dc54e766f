"""Operations and bytes of attention, RMSNorm and rotary positions, counted by hand."""

from __future__ import annotations

from typing import Any

import pytest

from partita.devices.kernels import op_cost
from partita.devices.kernels.op_cost import CostContext, layer_of
from partita.devices.kernels.op_forms import Layer
from partita.devices.timing.costs.source import context
from partita.errors import InvalidArgumentError
from partita.graph.attrs import decode
from partita.graph.dtypes import DataType, Dims
from partita.graph.ops.properties import properties_of
from partita.graph.ops.registry import lookup_op

OP, GRAD = "Partita>FlashAttention", "Partita>FlashAttentionGrad"
HALF = {"T": DataType.BFLOAT16, "G": DataType.BFLOAT16, "U": DataType.FLOAT}


def asked(op: str, inputs: list[Dims], outputs: list[Dims], **attrs: Any) -> CostContext:  # Any: attr values
    """One use of an op."""
    defaults = {name: decode(value) for name, value in lookup_op(op).defaults.items()}
    return context(properties_of(op, defaults | HALF | attrs), tuple(inputs), tuple(outputs))


def attention(queries: int, keys: int, *, kv_heads: int = 2, **attrs: Any) -> CostContext:  # Any: attr values
    """Two sequences, 4 heads of 8 and 6 elements."""
    query, key, value = (2, queries, 4, 8), (2, keys, kv_heads, 8), (2, keys, kv_heads, 6)
    return asked(OP, [query, key, value], [(2, queries, 4, 6), (2, 4, queries)], **attrs)


def backward(queries: int, keys: int, **attrs: Any) -> CostContext:  # Any: attr values
    """The gradient of that attention."""
    forward = attention(queries, keys, **attrs)
    output, rows = forward.outputs
    return asked(GRAD, [*forward.inputs, output, rows, output, rows], [*forward.inputs], **attrs)


def test_attention_counts_the_pairs_that_are_seen() -> None:
    """A multiplication and an addition for each element of query and value, of 8 heads of both sequences."""
    assert op_cost.flops_of(attention(5, 7)) == 8 * 35 * 2 * (8 + 6)
    assert op_cost.flops_of(attention(5, 7, causal=True)) == 8 * (1 + 2 + 3 + 4 + 5) * 2 * (8 + 6)
    assert op_cost.flops_of(attention(5, 7, causal=True, window=2, query_offset=2)) == 8 * 10 * 2 * (8 + 6)
    assert op_cost.flops_of(backward(5, 7)) == 8 * 35 * 2 * (3 * 8 + 2 * 6)


def test_keys_outside_of_every_window_are_not_read() -> None:
    """One query at position 99 reads 10 of 100 keys: 2 sequences, 2 heads of 8 and 6 elements of 2 bytes."""
    all_seen, near = attention(1, 100), attention(1, 100, causal=True, window=10, query_offset=99)
    outputs = 2 * 4 * (6 * 2 + 4)
    assert op_cost.bytes_of(all_seen) == 2 * 4 * 8 * 2 + 100 * 2 * 2 * 14 * 2 + outputs
    assert op_cost.bytes_of(near) == 2 * 4 * 8 * 2 + 10 * 2 * 2 * 14 * 2 + outputs
    assert op_cost.bytes_of(attention(0, 100)) == 0
    assert op_cost.bytes_of(attention(3, 0)) == 2 * 3 * 4 * (8 + 6) * 2 + 2 * 4 * 3 * 4


def test_attention_is_a_layer_of_the_fits() -> None:
    """Its square is twice the pairs that are seen; the way is that of the longest block, forward and back."""
    sizes = {"batch": 2, "heads": 4, "kv_heads": 2, "qk_head_dim": 8, "v_head_dim": 6}
    causal = attention(100, 100, causal=True)
    assert layer_of(causal) == Layer("attention", "fwd", {**sizes, "seq_len": 100, "square": 100 * 101})
    near = {"causal": True, "window": 30}
    seen = 30 * 31 // 2 + 70 * 30
    assert layer_of(attention(100, 100, **near)) == Layer(
        "attention", "fwd", {**sizes, "seq_len": 30, "square": 2 * seen}
    )
    late = {"causal": True, "query_offset": 100}
    pairs = 100 * 100 + 100 * 101 // 2
    for c, kind, longest in ((attention(100, 200, **late), "fwd", 200), (backward(100, 200, **late), "bwd", 100)):
        assert layer_of(c) == Layer("attention", kind, {**sizes, "seq_len": longest, "square": 2 * pairs})


def test_what_is_no_layer() -> None:
    """A few queries, whose keys are shared out; nothing at all; keys that nobody sees."""
    assert layer_of(attention(63, 1000)) is None
    assert layer_of(attention(64, 1000)) is not None
    assert layer_of(attention(100, 0)) is None
    assert layer_of(attention(100, 100, causal=True, key_offset=200)) is None
    assert not op_cost.is_layer("MatMul")


def test_norms_and_positions() -> None:
    """By element and row; what is not turned costs nothing."""
    norm = asked("Partita>RMSNorm", [(3, 5, 8), (8,)], [(3, 5, 8), (3, 5)])
    assert op_cost.flops_of(norm) == 4 * 120 + 4 * 15
    assert op_cost.bytes_of(norm) == 2 * (120 + 8 + 120) + 4 * 15
    slopes = asked("Partita>RMSNormGrad", [(3, 5, 8), (8,), (3, 5), (3, 5, 8)], [(3, 5, 8), (8,)])
    assert op_cost.flops_of(slopes) == 9 * 120
    norm = asked("Partita>LayerNorm", [(3, 5, 8), (8,), (8,)], [(3, 5, 8), (3, 5), (3, 5)], G=DataType.FLOAT)
    assert op_cost.flops_of(norm) == 7 * 120 + 5 * 15
    assert op_cost.bytes_of(norm) == 2 * 240 + 4 * (8 + 8 + 15 + 15)
    slopes = asked("Partita>LayerNormGrad", [(3, 5, 8), (8,), (3, 5), (3, 5), (3, 5, 8)], [(3, 5, 8), (8,), (8,)])
    assert op_cost.flops_of(slopes) == 13 * 120
    turned = asked("Partita>Rotary", [(2, 3, 4, 10), (3, 2), (3, 2)], [(2, 3, 4, 10)])
    assert op_cost.flops_of(turned) == 3 * 2 * 3 * 4 * 4


def test_activations() -> None:
    """Each element is read and written once, whatever a kernel does with it between."""
    shape = (3, 40)
    for op, inputs, outputs, operations in (
        ("Gelu", 1, 1, 2),
        ("GeluGrad", 2, 1, 8),
        ("GatedSilu", 2, 1, 42),
        ("GatedSiluGrad", 3, 2, 48),
    ):
        asked_of = asked(f"Partita>{op}", [shape] * inputs, [shape] * outputs)
        assert op_cost.flops_of(asked_of) == operations * 120
        assert op_cost.bytes_of(asked_of) == 2 * (inputs + outputs) * 120
    assert op_cost.flops_of(asked("Partita>Gelu", [shape], [shape], approximate=True)) == 44 * 120
    assert op_cost.flops_of(asked("Partita>GeluGrad", [shape] * 2, [shape], approximate=True)) == 53 * 120


def test_shapes_that_fit_no_attention() -> None:
    """They have no cost, and are no layer."""
    wrong = asked(OP, [(2, 3), (2, 3), (2, 3)], [(2, 3), (2,)])
    assert layer_of(wrong) is None
    with pytest.raises(InvalidArgumentError, match="they do not fit the op"):
        op_cost.flops_of(wrong)
