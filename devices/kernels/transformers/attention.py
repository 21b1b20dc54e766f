"""Attention as one kernel (Dao et al., FlashAttention, 2022), and its gradient.

    logsumexp = log(sum of exp(scale q k)) over the keys that a query sees
    output    = sum of exp(scale q k - logsumexp) v

A query that sees no key has output 0 and logsumexp -inf, and nothing flows back through it. Half types are computed in
float32 and rounded once. `attention_blocks` computes; here tensors become heads and back.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ....graph.ops.transformers.attention_sizes import VisibleKeys, attention_sizes, check_statistics_type
from ..half_types import widen
from ..registry import Construction, Kernel, kernel
from .attention_blocks import Heads, attend, attend_back

_BATCH_FIRST, _SEQUENCE_FIRST = (0, 2, 1, 3), (1, 2, 0, 3)
"""from the axes of a tensor to [batch, heads, positions, elements]"""


class _Layout(NamedTuple):
    """How tensors of rank 4 lie, the factor of products (0: 1 / sqrt(d)), and which keys a query sees."""

    axes: tuple[int, ...]
    scale: float
    visible: VisibleKeys

    @classmethod
    def of(cls, node: Construction) -> _Layout:
        """By the attrs of a node."""
        check_statistics_type(node.op, node.attrs["T"], node.attrs["U"])
        axes = _SEQUENCE_FIRST if node.attrs["sequence_first"] else _BATCH_FIRST
        return cls(axes, float(node.attrs["scale"]), VisibleKeys.of(node.attrs))

    def heads(self, query: Array, key: Array, value: Array) -> Heads:
        """The heads of a batch, those that share keys together, in the type that computes; queries are scaled."""
        attention_sizes(query.shape, key.shape, value.shape, sequence_first=self.axes == _SEQUENCE_FIRST)
        kv_heads, depth = key.shape[2:]
        factor = self.scale or 1 / sqrt(max(depth, 1))
        scaled = self.grouped(query, kv_heads)
        scaled *= scaled.dtype.type(factor)
        keys, values = (self.grouped(tensor, kv_heads)[:, 0] for tensor in (key, value))
        return Heads(scaled, keys, values, self.visible, factor)

    def grouped(self, tensor: Array, kv_heads: int) -> Array:
        """A new [batch * kv_heads, heads / kv_heads, positions, elements]."""
        ordered = np.array(widen(tensor).transpose(self.axes), order="C")
        batch, heads, *rest = ordered.shape
        return ordered.reshape(batch * kv_heads, heads // kv_heads if kv_heads else 1, *rest)

    def back(self, by_head: Array, shape: tuple[int, ...], like: Array) -> Array:
        """What lies by head as a tensor of that shape, in the type of `like`."""
        ordered = by_head.reshape([shape[axis] for axis in self.axes])
        return np.ascontiguousarray(ordered.transpose(np.argsort(self.axes)), like.dtype)

    def output_shapes(self, query: Array, value: Array) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Of output and logsumexp."""
        shape = (*query.shape[:3], value.shape[3])
        batch, heads, positions = (shape[axis] for axis in self.axes[:3])
        return shape, (batch, heads, positions)


@kernel("Partita>FlashAttention")
def flash_attention(node: Construction) -> Kernel:
    """Output and logsumexp."""
    layout = _Layout.of(node)

    def attention(query: Array, key: Array, value: Array) -> tuple[Array, Array]:
        output, logsumexp = attend(layout.heads(query, key, value))
        shape, rows = layout.output_shapes(query, value)
        return layout.back(output, shape, query), logsumexp.reshape(rows)

    return attention


@kernel("Partita>FlashAttentionGrad")
def flash_attention_grad(node: Construction) -> Kernel:
    """Gradients of query, key and value, given those of output and, if anything depends on it, of logsumexp."""
    layout = _Layout.of(node)

    def gradient(
        query: Array, key: Array, value: Array, output: Array, logsumexp: Array, d_output: Array, *d_logsumexp: Array
    ) -> tuple[Array, ...]:
        heads = layout.heads(query, key, value)
        shape, rows = layout.output_shapes(query, value)
        _check("output", output, shape)
        _check("logsumexp", logsumexp, rows)
        _check("d_output", d_output, shape)
        for slope in d_logsumexp:
            _check("d_logsumexp", slope, rows)
        results, d_results = (layout.grouped(tensor, key.shape[2]) for tensor in (output, d_output))
        by_row = heads.query.shape[:3]
        of_rows = d_logsumexp[0].reshape(by_row) if d_logsumexp else None
        slopes = attend_back(heads, logsumexp.reshape(by_row), results, d_results, of_rows)
        inputs = (query, key, value)
        return tuple(layout.back(slope, like.shape, like) for slope, like in zip(slopes, inputs, strict=True))

    return gradient


def _check(name: str, given: Array, wanted: tuple[int, ...]) -> None:
    if given.shape != wanted:
        raise InvalidArgumentError(
            f"{name} has the shape {shape_text(given.shape)}, but query, key and value give {shape_text(wanted)}; pass "
            "the outputs of the same attention, and their gradients"
        )
