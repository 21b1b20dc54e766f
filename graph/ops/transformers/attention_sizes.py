"""The sizes of an attention, and which keys a query sees: what its shape function, its kernel and its cost share.

causal, 4 queries and 4 keys          1 of 4, 2 of 4, 3 of 4, all        VisibleKeys(None, 1)
the same with a window of 2           1, 2, 2, 2                         VisibleKeys(-1, 1)
2 queries, the first at position 2    3 of 4, all                        VisibleKeys(None, 3)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ....errors import InvalidArgumentError
from ...analysis.shape_functions import merge_dims, shape_text
from ...dtypes import DataType, Shape, base_type, dtype_name


class AttentionSizes(NamedTuple):
    """The sizes of one attention, None where unknown: queries [batch, queries, heads, depth], of keys and values."""

    batch: int | None
    queries: int | None
    heads: int | None
    depth: int | None
    keys: int | None
    kv_heads: int | None
    value_depth: int | None


def attention_sizes(query: Shape, key: Shape, value: Shape, *, sequence_first: bool) -> AttentionSizes:
    """The sizes by three shapes of rank 4; InvalidArgumentError, which names the input, where they do not fit."""
    q, k, v = (
        _axes(name, shape, sequence_first=sequence_first)
        for name, shape in (("query", query), ("key", key), ("value", value))
    )
    batch = _merged("batch", _merged("batch", q[0], k[0], "query", "key"), v[0], "query", "value")
    depth = _merged("elements of a head", q[3], k[3], "query", "key")
    keys, kv_heads = (_merged(what, k[i], v[i], "key", "value") for i, what in ((1, "positions"), (2, "heads")))
    heads = q[2]
    if heads is not None and kv_heads is not None and (heads % kv_heads if kv_heads else heads):
        raise InvalidArgumentError(
            f"query has {heads} heads and key has {kv_heads}; as many queries must share each head of the keys: "
            f"repeat the heads of key and value, or make {heads} a multiple of {kv_heads}"
        )
    return AttentionSizes(batch, q[1], heads, depth, keys, kv_heads, v[3])


def _axes(name: str, shape: Shape, *, sequence_first: bool) -> tuple[int | None, ...]:
    """Batch, positions, heads and elements of a head."""
    if shape is None:
        return (None,) * 4
    if len(shape) != 4:
        order = "[s, b, heads, d]" if sequence_first else "[b, s, heads, d]"
        raise InvalidArgumentError(f"{name} must have rank 4, {order}, but its shape is {shape_text(shape)}")
    return (shape[1], shape[0], *shape[2:]) if sequence_first else shape


def _merged(what: str, a: int | None, b: int | None, of_a: str, of_b: str) -> int | None:
    try:
        return merge_dims(a, b)
    except InvalidArgumentError:
        raise InvalidArgumentError(f"{what} of {of_a} and {of_b} must be as many, but are {a} and {b}") from None


def check_statistics_type(op: str, values: DataType, statistics: DataType) -> None:
    """InvalidArgumentError unless U, the type of what the gradient reads again, is the one for T."""
    wanted = DataType.DOUBLE if base_type(values) is DataType.DOUBLE else DataType.FLOAT
    if base_type(statistics) is not wanted:
        raise InvalidArgumentError(
            f"{op} of {dtype_name(values)} has U = {dtype_name(wanted)}, not {dtype_name(statistics)}: set the attr U",
            op=op,
        )


class VisibleKeys(NamedTuple):
    """Query i sees the keys j with i + first <= j < i + end; None where there is no such bound."""

    first: int | None
    end: int | None

    @classmethod
    def of(cls, attrs: Mapping[str, Any]) -> VisibleKeys:  # Any: attrs have values of several types
        """By the attrs of an op: causal, window, query_offset, key_offset."""
        shift, window = int(attrs["query_offset"]) - int(attrs["key_offset"]), int(attrs["window"])
        first = shift - window + 1 if window else None
        if attrs["causal"]:
            return cls(first, shift + 1)
        return cls(first, shift + window if window else None)

    def span(self, query: int, keys: int) -> tuple[int, int]:
        """The first key, of so many, that a query sees, and the one behind the last; the same for one that sees none.

        Neither decreases from query to query.
        """
        first = 0 if self.first is None else min(max(0, query + self.first), keys)
        end = keys if self.end is None else min(max(0, query + self.end), keys)
        return first, max(first, end)

    def turned(self) -> VisibleKeys:
        """By which queries a key is seen: queries and keys change places."""
        return VisibleKeys(*(None if bound is None else 1 - bound for bound in (self.end, self.first)))

    def pairs(self, queries: int, keys: int) -> int:
        """How many pairs of a query and a key that it sees there are."""
        ends = queries * keys if self.end is None else _clipped_sum(self.end, queries, keys)
        return ends - (0 if self.first is None else _clipped_sum(self.first, queries, keys))

    def most(self, queries: int, keys: int) -> int:
        """The most keys that one query sees.

        The span grows until its end has reached the last key, and shrinks once its start has left the first: one of
        the queries at which either happens, or the first or the last query, sees the most.
        """
        if not queries:
            return 0
        turns = (0, queries - 1, *(keys - bound for bound in self if bound is not None))
        turns += tuple(-bound for bound in self if bound is not None)
        spans = (self.span(min(max(0, query), queries - 1), keys) for query in turns)
        return max(end - first for first, end in spans)


def _clipped_sum(start: int, count: int, most: int) -> int:
    """The sum of min(max(0, i), most) over the `count` numbers from `start` on."""

    def up_to(end: int) -> int:  # all i < end
        if end <= 0:
            return 0
        return end * (end - 1) // 2 if end <= most else most * (most - 1) // 2 + (end - most) * most

    return up_to(start + count) - up_to(start)
