"""Value rules of the ops that tell, build, cut and join shapes."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...analysis.value_rules import (
    MAX_ELEMENTS,
    InferredValues,
    ValueContext,
    array_rule,
    sizes_value,
    value_rule,
)
from ...dtypes import Array, known_dims, numpy_dtype
from .strided import Masks, numpy_index

# What shapes tell


@value_rule("Shape", "ShapeN")
def shape(c: ValueContext) -> InferredValues:
    """The sizes of each input."""
    return [None if sizes is None else sizes_value(sizes, c.dtype) for sizes in c.shapes]


@value_rule("Size")
def size(c: ValueContext) -> InferredValues | None:
    """The number of elements."""
    sizes = known_dims(c.shapes[0])
    return None if sizes is None else [np.array(prod(sizes), c.dtype)]


@value_rule("Rank")
def rank(c: ValueContext) -> InferredValues | None:
    """The number of axes."""
    sizes = c.shapes[0]
    return None if sizes is None else [np.array(len(sizes), c.dtype)]


array_rule("BroadcastArgs")(lambda _, v: np.broadcast_shapes(v[0].tolist(), v[1].tolist()))

# Layout

array_rule("Pack", whole=())(lambda c, v: np.stack(v, axis=c.attrs["axis"]))
array_rule("Concat", whole=(0,))(lambda _, v: np.concatenate(v[1:], axis=int(v[0])))
array_rule("ConcatV2", whole=(-1,))(lambda _, v: np.concatenate(v[:-1], axis=int(v[-1])))
array_rule("Reshape", whole=(1,))(lambda _, v: v[0].reshape(v[1].tolist()))
array_rule("Squeeze", whole=())(lambda c, v: v[0].squeeze(tuple(c.attrs["squeeze_dims"]) or None))
array_rule("ExpandDims", whole=(1,))(lambda _, v: np.expand_dims(v[0], int(v[1])))
array_rule("Tile", whole=(1,))(lambda _, v: np.tile(v[0], v[1].tolist()))
array_rule("Transpose", whole=(1,))(lambda _, v: v[0].transpose(v[1].tolist()))
array_rule("ReverseV2", whole=(1,))(lambda _, v: np.flip(v[0], tuple(v[1].reshape(-1).tolist())))
array_rule("InvertPermutation")(lambda _, v: np.argsort(v[0]))


@value_rule("Unpack")
def unpack(c: ValueContext) -> InferredValues | None:
    """One output per position along the axis."""
    known = c.known() or c.partly_known(())
    return None if known is None else list(np.moveaxis(known[0], c.attrs["axis"], 0))


@value_rule("Split")
def split(c: ValueContext) -> InferredValues | None:
    """Equal parts along the axis."""
    known = c.known() or c.partly_known((0,))
    return None if known is None else np.split(known[1], c.attrs["num_split"], axis=int(known[0]))


@value_rule("ConcatOffset")
def concat_offset(c: ValueContext) -> InferredValues | None:
    """By tensor to concatenate where it begins in the result: zeros but along the axis."""
    known = c.known() or c.partly_known((0,))
    if known is None:
        return None
    axis, shapes, start = int(known[0]), known[1:], 0
    offsets = []
    for sizes in shapes:
        offset = np.zeros(sizes.shape, np.result_type(sizes, start))
        offset[axis] = start
        start += sizes[axis]
        offsets.append(offset)
    return offsets


# New values


@array_rule("Fill")
def fill(_: ValueContext, v: list[Array]) -> Any:  # Any: see ArrayFunction
    """One number, many times."""
    if np.prod(v[0], dtype=np.int64) > MAX_ELEMENTS:
        raise OverflowError
    return np.full(v[0].tolist(), v[1])


@array_rule("Range")
def numbers(_: ValueContext, v: list[Array]) -> Any:  # Any: see ArrayFunction
    """Numbers from start to before limit."""
    counted = range(int(v[0]), int(v[1]), int(v[2]))
    if len(counted) > MAX_ELEMENTS:
        raise OverflowError
    return np.array(counted)


# Parts


@array_rule("Gather", "GatherV2", whole=(1, -1))
def gather(c: ValueContext, v: list[Array]) -> Any:  # Any: see ArrayFunction
    """The elements at indices along an axis; batches are not followed."""
    if c.attrs.get("batch_dims"):
        raise IndexError
    return np.take(v[0], v[1], axis=int(v[2]) if len(v) > 2 else 0)


@array_rule("Slice", whole=(1, 2))
def cut(_: ValueContext, v: list[Array]) -> Any:  # Any: see ArrayFunction
    """So many elements per axis from a position on; -1 for all the rest."""
    cuts = zip(v[1].tolist(), v[2].tolist(), strict=True)
    return v[0][tuple(slice(begin, None if count < 0 else begin + count) for begin, count in cuts)]


@array_rule("StridedSlice", whole=(1, 2, 3))
def strided_slice(c: ValueContext, v: list[Array]) -> Any:  # Any: see ArrayFunction
    """The elements that numpy gives for the same begin, end and strides."""
    begin, end, strides = (bound.tolist() for bound in v[1:])
    return v[0][tuple(numpy_index(begin, end, strides, Masks.of(c.attrs)))]


@value_rule("Unique")
def unique(c: ValueContext) -> InferredValues | None:
    """The distinct elements in order of appearance, and by position the index of its element among them."""
    known = c.known()
    if known is None:
        return None
    numbered: dict[int, int] = {}
    places = [numbered.setdefault(element, len(numbered)) for element in known[0].tolist()]
    return [np.array(list(numbered), c.dtype), np.array(places, numpy_dtype(c.properties.output_types[1]))]


@value_rule("ListDiff")
def list_diff(c: ValueContext) -> InferredValues | None:
    """The elements of the first list that are not in the second, and their positions."""
    known = c.known()
    if known is None:
        return None
    places = np.flatnonzero(~np.isin(known[0], known[1]))
    return [known[0][places], places.astype(numpy_dtype(c.properties.output_types[1]))]
