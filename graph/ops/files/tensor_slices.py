"""Slices of tensors, in the form that checkpoints and the ops that save and restore write them.

    "6 4 0,3:-"     of a tensor of shape [6, 4] the rows 0, 1 and 2, all columns: shape, then start and length per
                    dimension, "-" for all of it

An extent is None for a whole dimension, else a start (not negative) and a positive length. Checkpoints store tensors in
slices; `joined` puts any part of a tensor together from them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from ....errors import InternalError, InvalidArgumentError
from ...analysis.dims import shape_text
from ...dtypes import Array, DataType, numpy_dtype
from ...protos import TensorSliceProto

Extent = tuple[int, int] | None
SliceBounds = tuple[tuple[int, int], ...]
_NUMBER = re.compile(r"-?[0-9]+")
_LARGEST = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class TensorSlice:
    """A rectangular part of a tensor: start and length per dimension, None for a whole dimension."""

    extents: tuple[Extent, ...]

    def __str__(self) -> str:
        return ":".join("-" if extent is None else f"{extent[0]},{extent[1]}" for extent in self.extents)

    def bounds(self, shape: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
        """First index and end per dimension, for a tensor of that shape.

        Raises InternalError, as TensorFlow does, for another rank and for a slice that does not fit.
        """
        if len(self.extents) != len(shape):
            raise InternalError(f"Mismatching ranks: shape = {shape_text(shape)}, slice = {self}")
        pairs = zip(self.extents, shape, strict=True)
        bounds = tuple((0, size) if extent is None else (extent[0], sum(extent)) for extent, size in pairs)
        for dimension, ((_, end), size) in enumerate(zip(bounds, shape, strict=True)):
            if end > size:
                raise InternalError(
                    f"Extent in dimension {dimension} out of bounds: shape = {shape_text(shape)}, slice = {self}"
                )
        return bounds

    def shape_in(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Shape of the slice of a tensor of that shape; raises as `bounds`."""
        return tuple(end - start for start, end in self.bounds(shape))

    def to_proto(self) -> TensorSliceProto:
        """The message; a whole dimension has neither start nor length in it."""
        proto = TensorSliceProto()
        for extent in self.extents:
            added = proto.extent.add()
            if extent is not None:
                if extent[0]:
                    added.start = extent[0]
                added.length = extent[1]
        return proto


def slice_from_proto(proto: TensorSliceProto) -> TensorSlice:
    """The slice that a message describes."""
    return TensorSlice(tuple((e.start, e.length) if e.HasField("length") else None for e in proto.extent))


def parse_slice(text: str) -> TensorSlice:
    """Parses text such as "0,3:-"; InvalidArgumentError for malformed text."""
    return TensorSlice(tuple(_parse_extent(part, text) for part in text.split(":") if part))


def _parse_extent(part: str, text: str) -> Extent:
    if part == "-":
        return None
    numbers = [_integer(number) for number in part.split(",") if number]
    known = [number for number in numbers if number is not None]
    if len(numbers) != 2 or len(known) != 2:
        raise InvalidArgumentError(f"Expected a pair of numbers or '-' but got '{part}': string = {text}")
    start, length = known
    if start < 0 or length <= 0:
        raise InvalidArgumentError(
            "Expected non-negative start and positive length but got "
            f"start = {start}, length = {length}: string = {text}"
        )
    return start, length


def parse_shape_and_slice(text: str) -> tuple[tuple[int, ...], TensorSlice]:
    """Parses full shape and slice from text such as "6 4 0,3:-".

    Raises InvalidArgumentError for malformed text, InternalError for a slice that does not fit the shape.
    """
    *sizes, extents = text.split(" ")
    if not sizes:
        raise InvalidArgumentError(f"Need least two elements in shape_and_slice specification: {text}")
    shape = [_integer(size) for size in sizes]
    known = tuple(size for size in shape if size is not None and size >= 0)
    if len(known) != len(shape):
        raise InvalidArgumentError(f"Non numerical dimension in shape_and_slice: {text}")
    part = parse_slice(extents)
    part.bounds(known)
    return known, part


def _integer(text: str) -> int | None:
    """The number in a text, None if there is none or it has more than 64 bits."""
    if _NUMBER.fullmatch(text) is None or abs(int(text)) > _LARGEST:
        return None
    return int(text)


def joined(
    parts: Sequence[TensorSlice],
    value_of: Callable[[TensorSlice], Array],
    wanted: TensorSlice,
    shape: tuple[int, ...],
    dtype: DataType,
) -> Array | None:
    """The part `wanted` of a tensor of that full shape; None if the stored `parts` do not cover it.

    Only the slices that overlap it are read. Raises InternalError if two stored slices overlap.
    """
    _check_apart(parts, shape)
    bounds = wanted.bounds(shape)
    result = np.empty([end - start for start, end in bounds], numpy_dtype(dtype))
    missing = result.size
    for part in parts:
        held = part.bounds(shape)
        common = tuple((max(a, c), min(b, d)) for (a, b), (c, d) in zip(bounds, held, strict=True))
        if all(start < end for start, end in common):
            result[index_of(common, bounds)] = value_of(part)[index_of(common, held)]
            missing -= prod(end - start for start, end in common)
    return None if missing else result


def index_of(part: SliceBounds, within: SliceBounds | None = None) -> tuple[slice, ...]:
    """The slices that take `part` out of the whole array, or out of an array that is the part `within`."""
    origins = [0] * len(part) if within is None else [start for start, _ in within]
    return tuple(slice(start - origin, end - origin) for (start, end), origin in zip(part, origins, strict=True))


def _check_apart(parts: Sequence[TensorSlice], shape: tuple[int, ...]) -> None:
    """InternalError, as in TensorFlow, if two slices overlap."""
    bounds = np.array([part.bounds(shape) for part in parts], np.int64)
    for number in range(1, len(parts)):
        before, current = bounds[:number], bounds[number]
        common = (np.maximum(before, current)[..., 0] < np.minimum(before, current)[..., 1]).all(axis=-1)
        if common.any():
            existing = parts[int(common.argmax())]
            raise InternalError(f"Overlapping slices: existing slice = {existing}, new slice = {parts[number]}")
