"""Which keys a query sees, counted by hand, and what is refused before a run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import DataType
from partita.graph.ops.transformers.attention_sizes import VisibleKeys
from tests.devices.kernels.harness import shapes
from tests.devices.kernels.transformers.plain_attention import seen

ATTRS = st.fixed_dictionaries(
    {
        "causal": st.booleans(),
        "window": st.integers(0, 6),
        "query_offset": st.integers(0, 12),
        "key_offset": st.integers(0, 12),
    }
)
QUERY, KEY, VALUE = (2, 5, 4, 8), (2, 7, 2, 8), (2, 7, 2, 6)


@given(ATTRS, st.integers(0, 8), st.integers(0, 8))
def test_spans_are_the_keys_of_the_mask(attrs: dict[str, Any], queries: int, keys: int) -> None:
    """Each query sees the keys of its span, their number is counted without a loop, and so is the most of one query."""
    mask, visible = seen(queries, keys, **attrs), VisibleKeys.of(attrs)
    for query, row in enumerate(mask):
        assert list(np.flatnonzero(row)) == list(range(*visible.span(query, keys)))
    assert visible.pairs(queries, keys) == mask.sum()
    assert visible.most(queries, keys) == mask.sum(1).max(initial=0)


def test_shapes_follow_from_each_other() -> None:
    """What one input leaves open another says; nothing known gives nothing but ranks."""
    assert shapes("Partita>FlashAttention", QUERY, KEY, VALUE) == [(2, 5, 4, 6), (2, 4, 5)]
    assert shapes("Partita>FlashAttention", (None, 5, 4, 8), KEY, None) == [(2, 5, 4, None), (2, 4, 5)]
    assert shapes("Partita>FlashAttention", None, None, None) == [(None,) * 4, (None,) * 3]
    first = [(x[1], x[0], *x[2:]) for x in (QUERY, KEY, VALUE)]
    assert shapes("Partita>FlashAttention", *first, sequence_first=True) == [(5, 2, 4, 6), (2, 4, 5)]
    grad = shapes("Partita>FlashAttentionGrad", QUERY, None, VALUE, None, (2, 4, 5), None, None)
    assert grad == [QUERY, (2, 7, 2, 8), VALUE]
    assert shapes("Partita>RMSNorm", None, (4,)) == [None, None]
    assert shapes("Partita>RMSNorm", (2, None), (4,)) == [(2, 4), (2,)]
    assert shapes("Partita>RMSNormGrad", None, (None,), (2, 3), (2, 3, 4)) == [(2, 3, 4), (4,)]
    assert shapes("Partita>LayerNorm", (2, None), (None,), (4,)) == [(2, None), (2,), (2,)]
    assert shapes("Partita>LayerNormGrad", None, (None,), (2, 3), None, (2, 3, 4)) == [(2, 3, 4), (4,), (4,)]
    assert shapes("Partita>Gelu", (2, None)) == [(2, None)]
    assert shapes("Partita>GeluGrad", (2, None), (None, 3)) == [(2, 3)]
    assert shapes("Partita>GatedSilu", None, (2, 3)) == [(2, 3)]
    assert shapes("Partita>GatedSiluGrad", None, (2, None), (None, 3)) == [(2, 3), (2, 3)]
    assert shapes("Partita>Rotary", (2, None, 4, 8), (5, 3), None) == [(2, 5, 4, 8)]
    assert shapes("Partita>Rotary", None, (5, 3), None) == [None]


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "message"),
    [
        ("FlashAttention", [(5, 4, 8), KEY, VALUE], {}, r"query must have rank 4, \[b, s, heads, d\]"),
        ("FlashAttention", [QUERY, (2, 7, 2), VALUE], {"sequence_first": True}, r"key must have rank 4, \[s, b"),
        ("FlashAttention", [QUERY, (3, 7, 2, 8), VALUE], {}, "batch of query and key must be as many, but are 2 and 3"),
        ("FlashAttention", [QUERY, (2, 7, 2, 9), VALUE], {}, "elements of a head of query and key"),
        ("FlashAttention", [QUERY, KEY, (2, 6, 2, 8)], {}, "positions of key and value must be as many"),
        ("FlashAttention", [QUERY, KEY, (2, 7, 1, 8)], {}, "heads of key and value must be as many"),
        ("FlashAttention", [QUERY, (2, 7, 3, 8), (2, 7, 3, 8)], {}, "4 heads and key has 3; .* a multiple of 3"),
        ("FlashAttention", [QUERY, KEY, VALUE], {"U": DataType.DOUBLE}, "of float has U = float, not double"),
        (
            "FlashAttentionGrad",
            [QUERY, KEY, VALUE, QUERY, None, None, None],
            {},
            r"output has .* by the other inputs it is \[2,5,4,6\]",
        ),
        (
            "FlashAttentionGrad",
            [QUERY, KEY, VALUE, *[None] * 3, [None, None]],
            {"Nd_logsumexp": 2},
            "one d_logsumexp or none, not 2",
        ),
        ("RMSNorm", [(2, 3), (4,)], {}, r"x has the shape \[2,3\] and gain \[4\]"),
        ("RMSNorm", [(), (4,)], {}, "the last axis of x must be as long"),
        ("RMSNorm", [(2, 4), (4,)], {"T": DataType.DOUBLE}, "of double has U = double, not float: set the attr U"),
        ("RMSNormGrad", [(2, 4), (4,), (3,), None], {}, r"inverse_rms has the shape \[3\], but"),
        ("LayerNorm", [(2, 3), (3,), (4,)], {}, r"offset has the shape \[4\], but"),
        ("LayerNormGrad", [(2, 4), (4,), (2,), (3,), None], {}, r"inverse_deviation has the shape \[3\], but"),
        ("GeluGrad", [(2, 4), (4, 2)], {}, r"d_y has the shape \[4,2\], but by the other inputs it is \[2,4\]"),
        ("GatedSilu", [(2, 4), (4,)], {}, r"up has the shape \[4\], but"),
        ("Rotary", [(2, 5, 8), (5, 3), (5, 3)], {}, r"x must have rank 4, \[b, s, heads, d\]"),
        ("Rotary", [QUERY, (5,), (5,)], {}, r"cosines must have rank 2"),
        ("Rotary", [QUERY, (6, 3), (6, 3)], {}, "x has 5 positions and cosines 6 rows"),
        ("Rotary", [QUERY, (5, 5), (5, 5)], {}, "cosines has 5 columns, for 10 elements of a head, but x has 8"),
        ("Rotary", [QUERY, (5, 3), (5, 4)], {}, "3 and 4"),
    ],
)
def test_what_does_not_fit_is_refused(op: str, inputs: list[Any], attrs: dict[str, Any], message: str) -> None:
    """Before a run, with the input by name and what was expected."""
    with pytest.raises(InvalidArgumentError, match=message):
        shapes(f"Partita>{op}", *inputs, **attrs)
