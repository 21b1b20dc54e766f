"""Attention by blocks is attention with the whole square of products, in all types, block by block."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.kernels.linalg.products import batch_product
from partita.devices.kernels.transformers import attention_blocks
from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array, DataType
from tests.devices.kernels.harness import check_shapes, run
from tests.devices.kernels.transformers.plain_attention import attention, seen

OP, GRAD = "Partita>FlashAttention", "Partita>FlashAttentionGrad"
DOUBLE: dict[str, Any] = {"U": DataType.DOUBLE}  # attrs, of any type
MASKS = st.fixed_dictionaries(
    {
        "causal": st.booleans(),
        "window": st.sampled_from([0, 0, 1, 3, 40]),
        "query_offset": st.sampled_from([0, 0, 2, 50]),
        "key_offset": st.sampled_from([0, 0, 3, 60]),
    }
)
TYPES = {"float64": 1e-12, "float32": 3e-6, "float16": 2e-3, "bfloat16": 2e-2}


def inputs(*sizes: int, seed: int = 0) -> tuple[Array, Array, Array]:
    """Random query, key and value of batch, queries, keys, kv_heads, group, d and e."""
    batch, queries, keys, kv_heads, group, d, e = sizes
    random = np.random.default_rng(seed)
    shapes = ((batch, queries, kv_heads * group, d), (batch, keys, kv_heads, d), (batch, keys, kv_heads, e))
    query, key, value = (random.standard_normal(shape) for shape in shapes)
    return query, key, value


def swapped(*tensors: Array) -> list[Array]:
    """With the sequence first."""
    return [np.ascontiguousarray(tensor.swapaxes(0, 1)) for tensor in tensors]


@pytest.fixture
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 3 queries and at least 4 keys, so that short sequences have many."""
    for name, value in {"_BLOCK": 24, "_MOST_ROWS": 6, "_LEAST_ROWS": 3, "_LEAST_KEYS": 4, "_MOST_QUERIES": 3}.items():
        monkeypatch.setattr(attention_blocks, name, value)


@pytest.mark.usefixtures("_small_blocks")
@given(
    st.tuples(
        st.integers(1, 2), st.integers(1, 11), st.integers(1, 11), st.integers(1, 2), st.integers(1, 3),
        st.integers(1, 4), st.integers(1, 4),
    ),
    MASKS,
    st.sampled_from([0.0, 0.5, 3.0]),
    st.sampled_from(sorted(TYPES)),
)  # fmt: skip
def test_blocks_give_what_the_square_gives(sizes: tuple[int, ...], mask: dict[str, Any], scale: float, t: str) -> None:
    """Whatever is seen, however many heads share keys, with the batch or the sequence first."""
    dtype, rtol = np.dtype(getattr(ml_dtypes, t, t)), TYPES[t]
    query, key, value = (x.astype(dtype) for x in inputs(*sizes))
    attrs: dict[str, Any] = {**mask, "scale": scale, "U": DataType.DOUBLE if t == "float64" else DataType.FLOAT}
    output, logsumexp = check_shapes(OP, query, key, value, **attrs)
    wanted = attention(query, key, value, seen(sizes[1], sizes[2], **mask), scale)
    np.testing.assert_allclose(output.astype(np.float64), wanted[0], rtol, rtol)
    np.testing.assert_allclose(logsumexp, wanted[1], max(1e-12, TYPES["float32"] if t != "float64" else 0), 1e-5)
    turned, same = run(OP, *swapped(query, key, value), sequence_first=True, **attrs)
    np.testing.assert_array_equal(turned.swapaxes(0, 1), output)
    np.testing.assert_array_equal(same, logsumexp)


@pytest.mark.usefixtures("_small_blocks")
@given(st.integers(1, 9), st.integers(1, 9), MASKS, st.sampled_from(sorted(TYPES)))
def test_gradients_of_blocks(queries: int, keys: int, mask: dict[str, Any], t: str) -> None:
    """d value is p^T g, d products p (g v - sum(g o) + h): by the whole square in float64."""
    dtype, rtol = np.dtype(getattr(ml_dtypes, t, t)), 5 * TYPES[t]
    query, key, value = (x.astype(dtype) for x in inputs(2, queries, keys, 2, 2, 3, 4))
    statistics = np.dtype("float64" if t == "float64" else "float32")
    attrs: dict[str, Any] = {**mask, "U": DataType.DOUBLE if t == "float64" else DataType.FLOAT}
    output, logsumexp = run(OP, query, key, value, **attrs)
    random = np.random.default_rng(5)
    g, h = (
        random.standard_normal(output.shape).astype(dtype),
        random.standard_normal(logsumexp.shape).astype(statistics),
    )
    slopes = check_shapes(GRAD, query, key, value, output, logsumexp, g, h, **attrs)
    for got, wanted in zip(slopes, slopes_of_square(query, key, value, g, h, seen(queries, keys, **mask)), strict=True):
        np.testing.assert_allclose(got.astype(np.float64), wanted, rtol, 2 * rtol)


def slopes_of_square(query: Array, key: Array, value: Array, g: Array, h: Array, mask: Array) -> list[Array]:
    """The gradients by the definition, with all products at once."""
    wide = [x.astype(np.float64) for x in (query, key, value, g, h)]
    query, key, value, g, h = wide
    group, scale = query.shape[2] // key.shape[2], query.shape[3] ** -0.5
    output, logsumexp = attention(query, key, value, mask)
    keys, values = (np.repeat(x, group, 2) for x in (key, value))
    products = np.einsum("bshd,bthd->bhst", query, keys) * scale
    safe = np.nan_to_num(logsumexp, neginf=0)[..., None]
    weights = np.where(mask, np.exp(np.where(mask, products - safe, 0)), 0)
    of_rows = np.einsum("bshe,bshe->bhs", g, output) - h
    d_products = weights * (np.einsum("bshe,bthe->bhst", g, values) - of_rows[..., None]) * scale
    by_head = np.einsum("bhst,bshd->bthd", d_products, query), np.einsum("bhst,bshe->bthe", weights, g)
    shared = (x.reshape(*x.shape[:2], key.shape[2], group, -1).sum(3) for x in by_head)
    return [np.einsum("bhst,bthd->bshd", d_products, keys), *shared]


def test_a_query_that_sees_nothing() -> None:
    """Output 0 and logsumexp -inf; no gradient flows, not even from numbers that are none."""
    query, key, value = inputs(1, 4, 3, 1, 1, 2, 2)
    output, logsumexp = run(OP, query, key, value, causal=True, key_offset=2, **DOUBLE)
    assert np.isneginf(logsumexp[0, 0]).tolist() == [True, True, False, False]
    assert not output[0, :2].any()
    g, h = np.ones_like(output), np.ones_like(logsumexp)
    h[0, 0, 0] = g[0, 1] = np.nan
    d_query, d_key, d_value = run(GRAD, query, key, value, output, logsumexp, g, h, causal=True, key_offset=2, **DOUBLE)
    assert not d_query[0, :2].any()
    for slope in (d_query, d_key, d_value):
        assert np.isfinite(slope).all()


@pytest.mark.parametrize("sizes", [(0, 2, 3, 1, 1, 2, 2), (1, 0, 3, 1, 2, 2, 2), (1, 2, 0, 2, 1, 2, 2),
                                   (1, 2, 3, 0, 1, 2, 2), (1, 2, 3, 1, 1, 0, 2), (1, 2, 3, 1, 1, 2, 0)])  # fmt: skip
def test_nothing_is_an_attention_too(sizes: tuple[int, ...]) -> None:
    """No batch, queries, keys, heads or elements: outputs and gradients of the right shapes."""
    query, key, value = inputs(*sizes)
    output, logsumexp = check_shapes(OP, query, key, value, **DOUBLE)
    check_shapes(GRAD, query, key, value, output, logsumexp, output, np.ones_like(logsumexp), **DOUBLE)
    if sizes[2] == 0:
        assert not output.any()
        assert np.isneginf(logsumexp).all()


def test_great_products_do_not_overflow() -> None:
    """The greatest is taken away before the exponential, block by block."""
    query, key, value = (x.astype(np.float32) for x in inputs(1, 3, 2000, 1, 1, 4, 4))
    output, logsumexp = run(OP, query * 1000, key, value)
    wanted = attention(query * 1000, key, value, seen(3, 2000))
    np.testing.assert_allclose(output, wanted[0], 1e-3, 1e-3)
    np.testing.assert_allclose(logsumexp, wanted[1], 1e-5)


def test_no_array_of_products_grows_with_the_square(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 6,000 queries and keys, and of one query of a long sequence, at most a block exists at once."""
    sizes = []

    def product(a: Array, b: Array) -> Array:
        result = batch_product(a, b)
        sizes.append(result.size)
        return result

    monkeypatch.setattr(attention_blocks, "batch_product", product)
    for queries, keys, group in ((6000, 6000, 1), (1, 300_000, 8)):
        query, key, value = (x.astype(np.float32) for x in inputs(1, queries, keys, 1, group, 4, 4))
        attrs: dict[str, Any] = {"causal": True, "query_offset": keys - queries}
        output, logsumexp = run(OP, query, key, value, **attrs)
        run(GRAD, query, key, value, output, logsumexp, output, logsumexp, **attrs)
    assert max(sizes) <= 1 << 20


def test_a_long_sequence_has_many_blocks() -> None:
    """With the blocks of every day, ends that fit no block, heads that share keys, and a window."""
    query, key, value = inputs(1, 700, 1500, 1, 2, 3, 3)
    mask: dict[str, Any] = {"causal": True, "query_offset": 700, "window": 600}
    output, logsumexp = run(OP, query, key, value, **mask, **DOUBLE)
    wanted = attention(query, key, value, seen(700, 1500, **mask))
    np.testing.assert_allclose(output, wanted[0], 1e-12, 1e-12)
    np.testing.assert_allclose(logsumexp, wanted[1], 1e-12)
    g, h = np.cos(output), np.sin(logsumexp)
    slopes = run(GRAD, query, key, value, output, logsumexp, g, h, **mask, **DOUBLE)
    for got, slope in zip(slopes, slopes_of_square(query, key, value, g, h, seen(700, 1500, **mask)), strict=True):
        np.testing.assert_allclose(got, slope, 1e-9, 1e-11)


def test_parts_of_the_keys_combine_by_their_logsumexp() -> None:
    """As in a ring: the parts weighed by exp(part - whole) are the whole."""
    query, key, value = inputs(2, 5, 9, 1, 2, 3, 4)
    whole, logsumexp = run(OP, query, key, value, causal=True, query_offset=4, **DOUBLE)
    parts = [
        run(OP, query, key[:, at], value[:, at], causal=True, query_offset=4, key_offset=at.start, **DOUBLE)
        for at in (slice(0, 3), slice(3, 9))
    ]
    total = np.logaddexp(parts[0][1], parts[1][1])
    np.testing.assert_allclose(total, logsumexp, 1e-12)
    weighed = sum(part * np.exp(of_part - total).swapaxes(1, 2)[..., None] for part, of_part in parts)
    np.testing.assert_allclose(weighed, whole, 1e-12, 1e-12)


def test_wrong_inputs_are_named() -> None:
    """In the step too, where shapes were unknown before it."""
    query, key, value = inputs(1, 4, 3, 2, 2, 2, 2)
    with pytest.raises(InvalidArgumentError, match="query must have rank 4"):
        run(OP, query[0], key, value, **DOUBLE)
    with pytest.raises(InvalidArgumentError, match="3 heads and key has 2"):
        run(OP, query[:, :, :3], key, value, **DOUBLE)
    with pytest.raises(InvalidArgumentError, match="U = double, not float"):
        run(OP, query, key, value)
    output, logsumexp = run(OP, query, key, value, **DOUBLE)
    with pytest.raises(InvalidArgumentError, match=r"d_output has the shape \[1,3,4,2\], but .* give \[1,4,4,2\]"):
        run(GRAD, query, key, value, output, logsumexp, output[:, :3], logsumexp, **DOUBLE)
    with pytest.raises(InvalidArgumentError, match="logsumexp has the shape"):
        run(GRAD, query, key, value, output, logsumexp[0], output, logsumexp, **DOUBLE)
