"""Kernels on strings: joining, measuring, cutting out, changing case, n-grams.

Positions count bytes, or UTF-8 characters if the op's `unit` says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from math import prod

import numpy as np

from ....errors import InvalidArgumentError, OutOfRangeError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, numpy_dtype
from ..checks import require
from ..output_size import output_shape
from ..registry import Construction, Kernel, kernel, simple
from .each_string import character_starts, each, measured, strings

_SPACE = b" \t\n\v\f\r"


@kernel("StringJoin")
def string_join(node: Construction) -> Kernel:
    """The strings of all inputs concatenated; scalars apply to every element."""
    separator = node.attrs["separator"]

    def run(*inputs: Array) -> Array:
        shape = next((x.shape for x in inputs if x.ndim), ())
        for x in inputs:
            if x.ndim and x.shape != shape:
                raise InvalidArgumentError(f"Input shapes do not match: {shape_text(shape)} vs. {shape_text(x.shape)}")
        count = prod(shape)
        columns = [x.reshape(-1).tolist() if x.ndim else [x.item()] * count for x in inputs]
        rows = zip(*columns, strict=True) if columns else [()] * count
        return strings((separator.join(row) for row in rows), shape)

    return run


def _in_characters(node: Construction) -> bool:
    return bool(node.attrs["unit"] == b"UTF8_CHAR")


@kernel("StringLength")
def string_length(node: Construction) -> Kernel:
    """The bytes, or characters, of every string."""
    dtype = numpy_dtype(node.output_types[0])
    if _in_characters(node):
        return lambda x: measured(lambda value: len(character_starts(value)), x, dtype)
    return lambda x: measured(len, x, dtype)


def _bytes_part(value: bytes, position: int, length: int) -> bytes | None:
    if not -len(value) <= position <= len(value):
        return None
    first = position + len(value) if position < 0 else position
    return value[first:] if length < 0 else value[first : first + length]


def _characters_part(value: bytes, position: int, length: int) -> bytes | None:
    places = [*character_starts(value), len(value)]
    count = len(places) - 1
    if not -count <= position <= count:
        return None
    first = position + count if position < 0 else position
    return value[places[first] : places[min(first + max(length, 0), count)]]


def _broadcast(x: Array, pos: Array, length: Array) -> Sequence[Array]:
    if not pos.ndim:
        return x, pos.repeat(x.size), length.repeat(x.size)
    try:
        return np.broadcast_arrays(x, pos, length)
    except ValueError:
        raise InvalidArgumentError(f"Incompatible shapes: {shape_text(x.shape)} vs. {shape_text(pos.shape)}") from None


@kernel("Substr")
def substr(node: Construction) -> Kernel:
    """`len` bytes or characters of every string from `pos` on; negative positions count from the end."""
    in_characters = _in_characters(node)
    part = _characters_part if in_characters else _bytes_part

    def run(x: Array, pos: Array, length: Array) -> Array:
        if pos.shape != length.shape:
            raise InvalidArgumentError(
                f"pos and len should have the same shape, got: {shape_text(pos.shape)} vs. {shape_text(length.shape)}"
            )
        if x.shape != pos.shape:
            x, pos, length = _broadcast(x, pos, length)
        rows = zip(*(a.reshape(-1).tolist() for a in (x, pos, length)), strict=True)
        pieces: list[bytes] = []
        for i, (value, first, count) in enumerate(rows):
            piece = part(value, first, count)
            if piece is None:
                shown = "" if in_characters else f" b'{value.decode('utf-8', 'backslashreplace')}'"
                raise InvalidArgumentError(f"pos {first} out of range for string{shown} at index {i}")
            pieces.append(piece)
        return strings(pieces, x.shape)

    return run


def _cased(node: Construction, upper: bool) -> Kernel:
    encoding = node.attrs["encoding"]
    if encoding not in (b"", b"utf-8"):
        raise InvalidArgumentError(f"only utf-8 or '' (no encoding) is supported, received {encoding.decode()}")
    if not encoding:
        return lambda x: each(bytes.upper if upper else bytes.lower, x)

    def changed(value: bytes) -> bytes:
        text = value.decode("utf-8", "replace")
        return (text.upper() if upper else text.lower()).encode()

    return lambda x: each(changed, x)


@kernel("StringLower")
def string_lower(node: Construction) -> Kernel:
    """Lower case: of ASCII letters, or of all letters of UTF-8 text."""
    return _cased(node, upper=False)


@kernel("StringUpper")
def string_upper(node: Construction) -> Kernel:
    """Upper case: of ASCII letters, or of all letters of UTF-8 text."""
    return _cased(node, upper=True)


simple("StringStrip", lambda x: each(lambda value: value.strip(_SPACE), x))


def _join_axes(rank: int, indices: Array) -> list[int]:
    axes: list[int] = []
    for axis in indices.reshape(-1).tolist():
        if not -rank <= axis < rank:
            raise OutOfRangeError(f"Invalid reduction dimension {axis} for input with {rank} dimension(s)")
        if axis % rank in axes:
            raise InvalidArgumentError(f"Duplicate reduction dimension {axis}")
        axes.append(axis % rank)
    return axes


@kernel("ReduceJoin")
def reduce_join(node: Construction) -> Kernel:
    """The strings joined along the listed axes; the first listed axis varies fastest."""
    keep, separator = node.attrs["keep_dims"], node.attrs["separator"]

    def run(x: Array, indices: Array) -> Array:
        axes = _join_axes(x.ndim, indices)
        kept = [axis for axis in range(x.ndim) if axis not in axes]
        outer = tuple(x.shape[axis] for axis in kept)
        rows = x.transpose(kept + axes[::-1]).reshape(prod(outer), prod(x.shape[axis] for axis in axes))
        shape = tuple(1 if axis in axes else size for axis, size in enumerate(x.shape)) if keep else outer
        return strings((separator.join(row) for row in rows.tolist()), shape)

    return run


def _segment_misfit(shape: tuple[int, ...], segments: tuple[int, ...]) -> str:
    for axis, (a, b) in enumerate(zip(shape, segments, strict=False)):
        if a != b:
            return f"Segment dimension is {b} while input dimension is {a} in rank {axis}"
    return "Number of segment dimensions must not exceed that of the input"


@kernel("UnsortedSegmentJoin")
def unsorted_segment_join(node: Construction) -> Kernel:
    """For each segment, the strings that belong to it joined in their order."""
    separator = node.attrs["separator"]

    def run(x: Array, segment_ids: Array, num_segments: Array) -> Array:
        require(num_segments.ndim == 0, "Number of segments should be a scalar")
        count = int(num_segments)
        if segment_ids.ndim == 0:
            raise InvalidArgumentError("segment_ids cannot have rank 0")
        if x.shape[: segment_ids.ndim] != segment_ids.shape:
            raise InvalidArgumentError(_segment_misfit(x.shape, segment_ids.shape))
        if segment_ids.size and (segment_ids.min() < 0 or segment_ids.max() >= count):
            raise InvalidArgumentError("segment_ids are not allowed to exceed num_segments or to have negative values.")
        rest = x.shape[segment_ids.ndim :]
        width = int(np.prod(rest, dtype=np.int64))
        output_shape((count, *rest), x.dtype)
        cells: list[list[bytes]] = [[] for _ in range(count * width)]
        for segment, row in zip(
            segment_ids.reshape(-1).tolist(), x.reshape(segment_ids.size, width).tolist(), strict=True
        ):
            for i, value in enumerate(row):
                cells[segment * width + i].append(value)
        return strings((separator.join(cell) for cell in cells), (count, *rest))

    return run


def _check_splits(bounds: list[int], count: int) -> None:
    """InvalidArgumentError unless `bounds` rise from 0 to `count`."""
    if not bounds:
        return
    if bounds[0] != 0:
        raise InvalidArgumentError(f"First split value must be 0, got {bounds[0]}")
    for before, after in pairwise(bounds):
        if not before <= after <= count:
            raise InvalidArgumentError(f"Invalid split value {after}, must be in [{before}, {count}]")
    if bounds[-1] != count:
        raise InvalidArgumentError(f"Last split value must be data size. Expected {count}, got {bounds[-1]}")


@kernel("StringNGrams")
def string_ngrams(node: Construction) -> Kernel:
    """The n-grams of the tokens of each row, joined, with padding at both ends."""
    attrs = node.attrs
    separator, left, right = attrs["separator"], attrs["left_pad"], attrs["right_pad"]
    dtype = numpy_dtype(node.output_types[1])
    if any(width < 1 for width in attrs["ngram_widths"]):
        raise InvalidArgumentError("ngram_widths must contain positive values")

    def grams(tokens: Sequence[bytes], width: int, pad: int) -> list[bytes]:
        padded = [left] * pad + list(tokens) + [right] * pad
        return [separator.join(padded[i : i + width]) for i in range(len(padded) - width + 1)]

    def of_row(tokens: Sequence[bytes]) -> list[bytes]:
        result: list[bytes] = []
        for width in attrs["ngram_widths"]:
            pad = width - 1 if attrs["pad_width"] < 0 else min(attrs["pad_width"], width - 1)
            result += grams(tokens, width, pad)
        if not result and tokens and attrs["preserve_short_sequences"]:
            pad = max(attrs["pad_width"], 0)
            result = grams(tokens, len(tokens) + 2 * pad, pad)
        return result

    def run(data: Array, splits: Array) -> tuple[Array, Array]:
        if np.ndim(splits) != 1:
            raise InvalidArgumentError(f"splits must be a vector, got shape {shape_text(np.shape(splits))}")
        tokens, bounds = data.tolist(), splits.tolist()
        _check_splits(bounds, len(tokens))
        # Without any token TensorFlow gives no n-grams, not even of the padding around empty rows.
        rows = [of_row(tokens[a:b]) if tokens else [] for a, b in pairwise(bounds)]
        ends = [*accumulate(map(len, rows), initial=0)] if bounds else []
        flat = [gram for row in rows for gram in row]
        return strings(flat, (len(flat),)), np.array(ends, np.int64).astype(dtype)

    return run
