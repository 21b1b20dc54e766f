"""Attention spelled out with the whole square of products: what the kernels are compared with."""

from __future__ import annotations

import numpy as np

from partita.graph.dtypes import Array


def seen(
    queries: int, keys: int, *, causal: bool = False, window: int = 0, query_offset: int = 0, key_offset: int = 0
) -> Array:
    """Which keys each query sees, [queries, keys]."""
    query = np.arange(queries)[:, None] + query_offset
    key = np.arange(keys) + key_offset
    mask = np.ones((queries, keys), np.bool_)
    if causal:
        mask &= key <= query
    if window:
        mask &= abs(query - key) < window
    return mask


def attention(query: Array, key: Array, value: Array, mask: Array, scale: float = 0.0) -> tuple[Array, Array]:
    """Output [b, s, heads, e] and logsumexp [b, heads, s] in float64."""
    group = query.shape[2] // key.shape[2]
    keys, values = (np.repeat(x.astype(np.float64), group, 2) for x in (key, value))
    products = np.einsum("bshd,bthd->bhst", query.astype(np.float64), keys) * (scale or query.shape[3] ** -0.5)
    products = np.where(mask, products, -np.inf)
    greatest = np.nan_to_num(products.max(-1, initial=-np.inf, keepdims=True), neginf=0)
    powers = np.exp(products - greatest)
    total = powers.sum(-1)
    with np.errstate(divide="ignore"):
        logsumexp = greatest[..., 0] + np.log(total)
    weights = powers / np.where(total == 0, 1, total)[..., None]
    return np.einsum("bhst,bthe->bshe", weights, values), logsumexp
