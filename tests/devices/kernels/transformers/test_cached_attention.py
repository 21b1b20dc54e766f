"""Attention to rows of a cache is attention to the rows that are there, and reads no others."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.kernels import op_cost
from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array, DataType, Dims
from tests.devices.kernels.harness import check_shapes, run, shapes
from tests.devices.kernels.transformers.plain_attention import attention, seen
from tests.devices.kernels.transformers.test_transformers_costs import asked

OP = "Partita>CachedAttention"
TYPES = {"float64": 1e-12, "float32": 3e-6, "float16": 2e-3, "bfloat16": 2e-2}
QUERY, KEYS, VALUES = (2, 4, 8), (2, 2, 7, 8), (2, 2, 7, 6)


def drawn(*shapes_of_tensors: Dims) -> list[Array]:
    random = np.random.default_rng(0)
    return [random.standard_normal(shape) for shape in shapes_of_tensors]


@given(
    st.tuples(st.integers(1, 2), st.integers(1, 6), st.integers(1, 2), st.integers(1, 3), st.integers(1, 4)),
    st.integers(0, 5),
    st.sampled_from([0, 0, 1, 3]),
    st.sampled_from([0.0, 0.5]),
    st.sampled_from(sorted(TYPES)),
)
def test_rows_up_to_the_position_are_seen(sizes: tuple[int, ...], at: int, window: int, scale: float, t: str) -> None:
    """As a causal query at that position sees keys; what lies behind it may be anything."""
    batch, rows, kv_heads, group, size = sizes
    at = min(at, rows - 1)
    dtype, rtol = np.dtype(getattr(ml_dtypes, t, t)), TYPES[t]
    tensors = drawn((batch, kv_heads * group, size), (batch, kv_heads, rows, size), (batch, kv_heads, rows, size + 1))
    query, keys, values = (x.astype(dtype) for x in tensors)
    mask = seen(1, rows, causal=True, window=window, query_offset=at, key_offset=0)
    wanted = attention(query[:, None], keys.swapaxes(1, 2), values.swapaxes(1, 2), mask, scale)[0][:, 0]
    keys[:, :, at + 1 :] = values[:, :, at + 1 :] = np.nan
    found = check_shapes(OP, query, [keys, values], np.int32(at), window=window, scale=scale)
    np.testing.assert_allclose(found.astype(np.float64), wanted, rtol, rtol)


def test_values_may_be_the_beginning_of_keys() -> None:
    """One tensor holds both, as the narrow vectors of latent attention do."""
    query, keys = drawn(QUERY, KEYS)
    apart = run(OP, query, [keys, np.ascontiguousarray(keys[..., :5])], np.int32(4))
    np.testing.assert_array_equal(run(OP, query, [keys], np.int32(4), value_size=5), apart)


@pytest.mark.parametrize("at", [-1, 7])
def test_a_position_outside_of_the_cache_is_refused(at: int) -> None:
    """A sequence that is longer than its cache has no place to go on in."""
    query, keys = drawn(QUERY, KEYS)
    with pytest.raises(InvalidArgumentError, match=f"position {at} is outside of the 7 rows of the cache"):
        run(OP, query, [keys, keys], np.int32(at))


def test_shapes_follow_from_each_other() -> None:
    """Of keys and values, of keys alone, and of what is not known."""
    assert shapes(OP, QUERY, [KEYS, VALUES], ()) == [(2, 4, 6)]
    assert shapes(OP, QUERY, [KEYS], (), value_size=5) == [(2, 4, 5)]
    assert shapes(OP, (None, 4, None), [KEYS, None], None) == [(2, 4, None)]


@pytest.mark.parametrize(
    ("inputs", "attrs", "message"),
    [
        (((1, 2, 4, 8), [KEYS], ()), {}, r"query must have rank 3, \[b, heads, d\]"),
        ((QUERY, [KEYS, VALUES, VALUES], ()), {}, "rows are keys, or keys and values, but there are 3 tensors"),
        ((QUERY, [(2, 2, 7, 9), VALUES], ()), {}, "elements of a head of query and key must be as many"),
        ((QUERY, [(2, 3, 7, 8)], ()), {}, "make 4 a multiple of 3"),
        ((QUERY, [KEYS], (1,)), {}, r"position must be a scalar, but its shape is \[1\]"),
        ((QUERY, [KEYS], ()), {"value_size": 9}, "value_size=9 is more than the 8 elements of a key; give 8"),
        ((QUERY, [KEYS, VALUES], ()), {"value_size": 3}, "leave it out, or leave out the values"),
    ],
)
def test_what_does_not_fit_is_refused(inputs: Any, attrs: dict[str, Any], message: str) -> None:  # Any: shapes
    """Before a run, by the name of the input."""
    with pytest.raises(InvalidArgumentError, match=message):
        shapes(OP, *inputs, **attrs)


def test_the_cache_is_read_once() -> None:
    """Operations and bytes counted by hand, all 7 rows or those of a window of 3; half types have 2 bytes."""

    def cost(*rows: Dims, **attrs: Any) -> tuple[int, int]:  # Any: attr values
        size = attrs.get("value_size") or rows[-1][3]
        c = asked(OP, [QUERY, *rows, ()], [(2, 4, size)], N=len(rows), U=DataType.FLOAT, **attrs)
        return op_cost.flops_of(c), op_cost.bytes_of(c)

    assert cost(KEYS, VALUES) == (2 * 8 * 7 * 14, 2 * (64 + 2 * 2 * 7 * 14 + 48))
    assert cost(KEYS, VALUES, window=3) == (2 * 8 * 3 * 14, 2 * (64 + 2 * 2 * 3 * 14 + 48))
    assert cost(KEYS, value_size=6) == (2 * 8 * 7 * 14, 2 * (64 + 2 * 2 * 7 * 8 + 48))
