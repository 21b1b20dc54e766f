"""The meaning of begin, end, strides and the five masks of a strided slice, for shape functions and kernels alike.

Bit i of a mask belongs to entry i of the lists; an ellipsis takes precedence over a new axis, and that over a dropped
axis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import EllipsisType
from typing import Any

from ....errors import InvalidArgumentError

# An entry of a numpy index: a range, a single position, a new axis, or all remaining axes.
IndexEntry = slice | int | None | EllipsisType


@dataclass(frozen=True, slots=True)
class Masks:
    """The masks of a strided slice; bit i belongs to entry i of begin, end and strides."""

    begin: int
    end: int
    ellipsis: int
    new_axis: int
    shrink: int

    @classmethod
    def of(cls, attrs: Mapping[str, Any]) -> Masks:  # decoded attr values: their type depends on the attr
        """The masks in a node's attrs."""
        names = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
        return cls(*(attrs.get(name, 0) for name in names))


def numpy_index(begin: Sequence[int], end: Sequence[int], strides: Sequence[int], masks: Masks) -> list[IndexEntry]:
    """The same slice as a numpy index; numpy clamps and counts from the end exactly as TensorFlow does.

    Raises IndexError for a dropped axis with a backward stride, ValueError for lists of different lengths.
    """
    index: list[IndexEntry] = []
    for i, (first, last, stride) in enumerate(zip(begin, end, strides, strict=True)):
        bit = 1 << i
        if masks.ellipsis & bit:
            index.append(Ellipsis)
        elif masks.new_axis & bit:
            index.append(None)
        elif masks.shrink & bit:
            if stride <= 0:
                raise IndexError
            index.append(first)
        else:
            index.append(slice(None if masks.begin & bit else first, None if masks.end & bit else last, stride))
    return index


@dataclass(frozen=True, slots=True)
class SlicedAxis:
    """One axis of the input or of the result: `axis` is None for a new axis, `entry` where the whole axis is kept."""

    axis: int | None
    entry: int | None
    dropped: bool


def parts(rank: int, count: int, masks: Masks) -> list[SlicedAxis]:
    """The axes of the input and of the result of a slice with `count` entries, in the order of the result's axes.

    InvalidArgumentError for a second ellipsis or for more entries than axes.
    """
    inside = masks.ellipsis & ((1 << count) - 1)
    if masks.ellipsis & (masks.ellipsis - 1):
        raise InvalidArgumentError("Multiple ellipses in slice spec not allowed")
    used = sum(1 for i in range(count) if not (inside | masks.new_axis) >> i & 1)
    if used and not rank:
        raise InvalidArgumentError("Attempting to slice scalar input.")
    if used > rank:
        raise InvalidArgumentError(f"Index out of range using input dim {rank}; input has only {rank} dims")
    result: list[SlicedAxis] = []
    axis = 0
    for i in range(count):
        if inside >> i & 1:
            result += [SlicedAxis(a, None, False) for a in range(axis, axis + rank - used)]
            axis += rank - used
        elif masks.new_axis >> i & 1:
            result.append(SlicedAxis(None, i, False))
        else:
            result.append(SlicedAxis(axis, i, bool(masks.shrink >> i & 1)))
            axis += 1
    return result + [SlicedAxis(a, None, False) for a in range(axis, rank)]


def sliced_shape(
    shape: tuple[int | None, ...],
    begin: Sequence[int | None] | None,
    end: Sequence[int | None] | None,
    strides: Sequence[int],
    masks: Masks,
) -> tuple[int | None, ...]:
    """The shape of the result; a size that depends on an unknown begin or end is unknown.

    Raises InvalidArgumentError, in TensorFlow's words, for a slice that does not fit a tensor of these sizes.
    """
    count = len(strides)
    lengths = [count if x is None else len(x) for x in (begin, end)]
    if lengths != [count, count]:
        raise InvalidArgumentError(
            "Expected begin, end, and strides to be 1D equal size tensors, but got shapes "
            f"[{lengths[0]}], [{lengths[1]}], and [{count}] instead."
        )
    sizes: list[int | None] = []
    for part in parts(len(shape), count, masks):
        if part.axis is None:
            sizes.append(1)
        elif part.entry is None:
            sizes.append(shape[part.axis])
        else:
            i = part.entry
            bounds = (None if begin is None else begin[i], None if end is None else end[i], strides[i])
            size = _size(shape[part.axis], part.axis, bounds, (i, masks, part.dropped))
            sizes += [] if part.dropped else [size]
    return tuple(sizes)


def _size(
    size: int | None, axis: int, bounds: tuple[int | None, int | None, int], entry: tuple[int, Masks, bool]
) -> int | None:
    (first, last, stride), (i, masks, dropped) = bounds, entry
    if stride == 0:
        raise InvalidArgumentError(f"strides[{i}] must be non-zero")
    if dropped and stride < 0:
        raise InvalidArgumentError("only stride 1 allowed on non-range indexing.")
    if dropped and size is not None and first is not None and not -size <= first < size:
        raise InvalidArgumentError(
            f"slice index {first + size if first < 0 else first} of dimension {axis} out of bounds."
        )
    whole_begin, whole_end = bool(masks.begin >> i & 1), bool(masks.end >> i & 1)
    if size is None or (first is None and not whole_begin) or (last is None and not whole_end):
        return None
    bounded = slice(None if whole_begin else first, None if whole_end else last, stride)
    return len(range(*bounded.indices(size)))
