"""Queries, keys and values of a rank's heads, by one product as in Megatron-LM, or by three.

    4 heads that share 2 key-value heads, over tp=2      columns of the weights    q0 q1 k0 v0 | q2 q3 k1 v1
                                                         the rank's product        [rows, (q0 q1 k0 v0)]

A key-value head stands behind the query heads that read it, so that equal parts of the columns are whole heads, and
`joint_columns` says where each column is when queries, keys and values are apart: "query", "key" and "value" are the
names by which their initial numbers are drawn, in both ways. Where there are fewer key-value heads than ranks the
products are apart: each rank has the whole weights of keys and values and computes the one head that its query heads
read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np

from .....graph.builder.handles import Tensor
from .....graph.dtypes import Array
from ..network import RankNetwork
from ..products import Rows, biased, column_of
from .core import AttentionKind

JOINT = "query_key_value"
_APART = ("query", "key", "value")


def joint_columns(kind: AttentionKind) -> Array:
    """Of each column of the joint weights its number among all queries, then all keys, then all values."""
    ends = np.cumsum(_widths(kind))[:-1]
    by_head = [
        part.reshape(kind.kv_heads, -1) for part in np.split(np.arange(sum(_widths(kind)), dtype=np.int32), ends)
    ]
    return np.concatenate(by_head, 1).reshape(-1)


def apart(joint: Array, kind: AttentionKind) -> dict[str, Array]:
    """The parts "query", "key" and "value" of weights or biases whose last axis has the columns of `joint_columns`."""
    ordered = joint[..., np.argsort(joint_columns(kind))]
    parts = np.split(ordered, np.cumsum(_widths(kind))[:-1], axis=-1)
    return dict(zip(_APART, parts, strict=True))


class Projections(NamedTuple):
    """Makes the rank's queries, keys and values of any rows, and their heads of what was made of all rows."""

    products: Callable[[Tensor], Sequence[Tensor]]
    """[.., hidden] that `entered` gave -> one tensor, or three, with the columns of the rank"""
    heads: Callable[[Sequence[Tensor]], Sequence[Tensor]]
    """these for all rows -> queries, keys and values [length, batch, heads, size]"""


def query_key_value(
    network: RankNetwork, hidden: int, whole: AttentionKind, own: AttentionKind, *, bias: bool
) -> Projections:
    """The weights of a layer's queries, keys and values, of `whole` heads on all ranks and `own` on this one."""
    if whole.kv_heads < network.tp:
        return _by_three(network, hidden, whole, own, bias)
    widths = _widths(whole)
    starts = _Starts(network, hidden, whole)
    joint = column_of(network, JOINT, (hidden, sum(widths)), bias=bias, start=starts.joint)
    return Projections(lambda x: [joint(x)], lambda made: _parted(network, made[0], whole, own))


def _parted(network: RankNetwork, y: Tensor, whole: AttentionKind, own: AttentionKind) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values of the joint columns y [rows, columns]."""
    group = whole.heads // whole.kv_heads
    sizes = [group * whole.size, whole.size, whole.value_size]
    by_head = network.heads(y, own.kv_heads, sum(sizes))
    query, key, value = network.b.op("SplitV", by_head, sizes, -1, num_split=3, name="parts")
    if group > 1:
        query = network.reshaped(query, [network.length, network.sizes.batch, own.heads, own.size], "queries")
    return query, key, value


def _widths(kind: AttentionKind) -> tuple[int, int, int]:
    """The columns of queries, keys and values."""
    return kind.heads * kind.size, kind.kv_heads * kind.size, kind.kv_heads * kind.value_size


class _Starts:
    """The initial weights: numbers drawn apart, in the order of columns."""

    def __init__(self, network: RankNetwork, hidden: int, kind: AttentionKind) -> None:
        self._network, self._hidden, self._kind = network, hidden, kind
        self._names = []
        for name in _APART:
            with network.b.scope(f"{name}/weights") as full:
                self._names.append(full)

    def joint(self) -> Tensor:
        """[hidden, all columns]."""
        b, parameters = self._network.b, self._network.parameters
        parts = [
            parameters.uniform(name, (self._hidden, width), sqrt(3 / self._hidden), drawn_as=full)
            for name, full, width in zip(_APART, self._names, _widths(self._kind), strict=True)
        ]
        return b.op("GatherV2", b.op("ConcatV2", parts, 1), joint_columns(self._kind), 1, name="joint")[0]


def _by_three(network: RankNetwork, hidden: int, whole: AttentionKind, own: AttentionKind, bias: bool) -> Projections:
    products = [
        column_of(network, "query", (hidden, whole.heads * whole.size), bias=bias),
        _of_shared_head(network, "key", (hidden, whole.kv_heads * whole.size), whole, bias),
        _of_shared_head(network, "value", (hidden, whole.kv_heads * whole.value_size), whole, bias),
    ]
    cut = ((own.heads, own.size), (own.kv_heads, own.size), (own.kv_heads, own.value_size))
    return Projections(
        lambda x: [product(x) for product in products],
        lambda made: [network.heads(y, *sizes) for y, sizes in zip(made, cut, strict=True)],
    )


def _of_shared_head(network: RankNetwork, name: str, shape: Sequence[int], kind: AttentionKind, bias: bool) -> Rows:
    """Makes the keys, or the values, of the one head that the rank's query heads read: [.., size]."""
    b, size = network.b, shape[1] // kind.kv_heads
    head = b.op("FloorDiv", network.program.position("tp"), network.tp // kind.kv_heads, name="head")
    first = b.op("Mul", head, size)
    weights = network.parameters.weight(f"{name}/weights", shape, scale=sqrt(3 / shape[0]), partial_over=("tp",))
    part = b.op("Slice", weights, b.op("Pack", [0, first]), [shape[0], size], name=f"{name}/part")[0]
    own: Tensor | None = None
    if bias:
        numbers = network.parameters.weight(f"{name}/bias", (shape[1],), start=0.0, partial_over=("tp",))
        own = b.op("Slice", numbers, b.op("Pack", [first]), [size], name=f"{name}/bias_part")[0]
    return lambda x: biased(network, network.product(x, part, f"{name}/product"), name, own)
