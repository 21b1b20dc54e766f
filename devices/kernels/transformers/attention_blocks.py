"""The arithmetic of attention, a block of queries by a block of keys at a time.

4096 queries and keys, causal, 1 head:
    queries    0 -  511    keys 0 -  511            the rows of these queries are then done
    queries  512 - 1023    keys 0 - 1023            ...
    queries 3584 - 4095    keys 0 - 2047, keys 2048 - 4095

The products of all queries with all keys never exist at once: memory is that of the inputs and of a few arrays of about
`_BLOCK` numbers, whatever the lengths. Keys that none of the queries of a block sees are left out. A softmax over
several blocks of keys keeps the greatest product so far, and what was added up is scaled down when a greater one comes
(Milakov and Gimelshein, Online normalizer calculation for softmax, 2018). Blocks depend on sizes alone, so that the
same values have the same bits in every run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ....graph.dtypes import Array
from ....graph.ops.transformers.attention_sizes import VisibleKeys
from ..linalg.products import batch_product

_BLOCK = 1 << 20
"""about so many products exist at once"""
_MOST_ROWS, _LEAST_ROWS, _LEAST_KEYS = 2048, 16, 512
"""of a block: the heads that share keys times their queries, the queries of one head, and keys"""
_MOST_QUERIES = 512


class Heads(NamedTuple):
    """Heads that share keys, of several batches.

    query [n, group, s, d], already multiplied by `factor`; key [n, t, d]; value [n, t, e].
    """

    query: Array
    key: Array
    value: Array
    visible: VisibleKeys
    factor: float


class _Block(NamedTuple):
    """Some of the n, the queries from one position up to another, and the keys that some of them see, cut."""

    heads: slice
    queries: slice
    keys: tuple[slice, ...]


def _blocks(heads: Heads) -> Iterator[_Block]:
    """All blocks that have queries, those without keys too."""
    n, group, queries, _ = heads.query.shape
    keys = heads.key.shape[1]
    rows = min(max(1, queries), max(_LEAST_ROWS, min(_MOST_QUERIES, _MOST_ROWS // max(1, group))))
    columns = min(max(1, keys), max(_LEAST_KEYS, _BLOCK // (rows * max(1, group))))
    together = max(1, _BLOCK // (rows * max(1, group) * columns))
    for at in range(0, n, together):
        for first in range(0, queries, rows):
            last = min(first + rows, queries) - 1
            begin, end = heads.visible.span(first, keys)[0], heads.visible.span(last, keys)[1]
            parts = tuple(slice(key, min(key + columns, end)) for key in range(begin, end, columns))
            yield _Block(slice(at, at + together), slice(first, last + 1), parts)


def _products(heads: Heads, block: _Block, keys: slice, rows: Array) -> Array:
    """The scaled products [n, rows, keys] of a block, -inf where the query does not see the key."""
    scores = batch_product(rows, heads.key[block.heads, keys].swapaxes(1, 2))
    hidden = _hidden(heads.visible, block.queries, keys)
    if hidden is not None:
        by_query = scores.reshape(len(scores), heads.query.shape[1], *hidden.shape)
        np.copyto(by_query, -np.inf, where=hidden)
    return scores


def _hidden(visible: VisibleKeys, queries: slice, keys: slice) -> Array | None:
    """Which keys a query does not see, [queries, keys]; None where all see all."""
    far = np.arange(keys.start, keys.stop) - np.arange(queries.start, queries.stop)[:, None]
    hidden = None
    if visible.first is not None and far[-1, 0] < visible.first:
        hidden = far < visible.first
    if visible.end is not None and far[0, -1] >= visible.end:
        late = far >= visible.end
        hidden = late if hidden is None else hidden | late
    return hidden


def _rows(tensor: Array, block: _Block) -> Array:
    """The rows [n, group * queries, ...] of a block of a tensor [n, group, s, ...]."""
    part = tensor[block.heads, :, block.queries]
    return part.reshape(part.shape[0], part.shape[1] * part.shape[2], *part.shape[3:])


def _finite(values: Array) -> Array:
    """0 in place of -inf."""
    return np.where(np.isneginf(values), values.dtype.type(0), values)


def attend(heads: Heads) -> tuple[Array, Array]:
    """Output [n, group, s, e] and logsumexp [n, group, s]."""
    shape = heads.query.shape[:3]
    output = np.zeros((*shape, heads.value.shape[2]), heads.query.dtype)
    logsumexp = np.full(shape, -np.inf, heads.query.dtype)
    for block in _blocks(heads):
        if block.keys:
            mean, of_rows = _attend_block(heads, block)
            part = output[block.heads, :, block.queries]
            part[...] = mean.reshape(part.shape)
            logsumexp[block.heads, :, block.queries] = of_rows.reshape(part.shape[:3])
    return output, logsumexp


def _attend_block(heads: Heads, block: _Block) -> tuple[Array, Array]:
    """The outputs of the rows of a block, and their logsumexp."""
    rows = _rows(heads.query, block)
    greatest = np.full(rows.shape[:2], -np.inf, rows.dtype)
    total = np.zeros_like(greatest)
    weighted = np.zeros((*rows.shape[:2], heads.value.shape[2]), rows.dtype)
    for keys in block.keys:
        scores = _products(heads, block, keys, rows)
        new = np.maximum(greatest, scores.max(-1))
        peak = _finite(new)  # -inf - -inf would be NaN
        scores -= peak[..., None]
        powers = np.exp(scores, out=scores)
        shrunk = np.exp(greatest - peak)
        total = total * shrunk + powers.sum(-1)
        weighted *= shrunk[..., None]
        weighted += batch_product(powers, heads.value[block.heads, keys])
        greatest = new
    weighted /= np.where(total == 0, total.dtype.type(1), total)[..., None]
    return weighted, _finite(greatest) + np.log(total)


def attend_back(
    heads: Heads, logsumexp: Array, output: Array, d_output: Array, d_logsumexp: Array | None
) -> tuple[Array, Array, Array]:
    """The gradients of query (before it was scaled), key and value, in the shapes of `heads`.

    With p = exp(product - logsumexp), d product = p (d_output v - sum(d_output output) + d_logsumexp).
    """
    sees_none = np.isneginf(logsumexp)
    d_output = np.where(sees_none[..., None], d_output.dtype.type(0), d_output)
    shift = (d_output * output).sum(-1)
    if d_logsumexp is not None:
        shift -= d_logsumexp
    shift = np.where(sees_none, logsumexp.dtype.type(0), shift)
    logsumexp = _finite(logsumexp)
    d_query, d_key, d_value = (np.zeros(tensor.shape, heads.query.dtype) for tensor in heads[:3])
    for block in _blocks(heads):
        query, slopes = _rows(heads.query, block), _rows(d_output, block)
        of_rows, shifts = _rows(logsumexp, block)[..., None], _rows(shift, block)[..., None]
        d_rows = np.zeros_like(query)
        for keys in block.keys:
            powers = _products(heads, block, keys, query)
            powers -= of_rows
            np.exp(powers, out=powers)
            d_value[block.heads, keys] += batch_product(powers.swapaxes(1, 2), slopes)
            d_products = batch_product(slopes, heads.value[block.heads, keys].swapaxes(1, 2))
            d_products -= shifts
            d_products *= powers
            d_rows += batch_product(d_products, heads.key[block.heads, keys])
            d_key[block.heads, keys] += batch_product(d_products.swapaxes(1, 2), query)
        part = d_query[block.heads, :, block.queries]
        part[...] = d_rows.reshape(part.shape)
    d_query *= d_query.dtype.type(heads.factor)
    return d_query, d_key, d_value
