"""The sizes of attention of one query to rows of a cache, and its shape function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ....errors import InvalidArgumentError
from ...analysis.shape_functions import ShapeContext, shape_fn, shape_text
from ...dtypes import Shape
from .attention_sizes import attention_sizes


class CachedSizes(NamedTuple):
    """None where unknown; `value_size` are the elements of a row of output."""

    batch: int | None
    heads: int | None
    kv_heads: int | None
    rows: int | None
    value_size: int | None


def cached_sizes(query: Shape, rows: Sequence[Shape], value_size: int) -> CachedSizes:
    """By query [b, heads, d], and keys [b, kv_heads, t, d] with values [b, kv_heads, t, e] or with none.

    Raises InvalidArgumentError, which names the input, where they do not fit.
    """
    if query is not None and len(query) != 3:
        raise InvalidArgumentError(f"query must have rank 3, [b, heads, d], but its shape is {shape_text(query)}")
    if len(rows) > 2:
        raise InvalidArgumentError(f"rows are keys, or keys and values, but there are {len(rows)} tensors")
    one = None if query is None else (query[0], 1, *query[1:])
    key, value = (_by_position(rows[k]) for k in (0, -1))
    sizes = attention_sizes(one, key, value, sequence_first=False)
    width = sizes.value_depth
    if value_size and len(rows) > 1:
        raise InvalidArgumentError(
            f"value_size={value_size} says how much of each key is its value; leave it out, or leave out the values"
        )
    if value_size and width is not None and value_size > width:
        raise InvalidArgumentError(f"value_size={value_size} is more than the {width} elements of a key; give {width}")
    return CachedSizes(sizes.batch, sizes.heads, sizes.kv_heads, sizes.keys, value_size or width)


def _by_position(shape: Shape) -> Shape:
    """[b, kv_heads, t, d] -> [b, t, kv_heads, d]; another rank stays, and is refused."""
    return shape if shape is None or len(shape) != 4 else (shape[0], shape[2], shape[1], shape[3])


@shape_fn("Partita>CachedAttention")
def cached_attention(c: ShapeContext) -> Sequence[Shape]:
    """[b, heads, d] and rows [b, kv_heads, t, d] (and [b, kv_heads, t, e]) -> [b, heads, e]."""
    position = c.inputs[-1]
    if position not in (None, ()):
        raise InvalidArgumentError(f"position must be a scalar, but its shape is {shape_text(position)}")
    sizes = cached_sizes(c.inputs[0], c.inputs[1:-1], int(c.attrs["value_size"]))
    return ((sizes.batch, sizes.heads, sizes.value_size),)
