"""Windows over arrays [batch, spatial..., channels]: patches for convolutions, shifted views for poolings.

Also which cell of each window of a maximum pooling is the first largest one, in row-major order:

    x [[1 3] [3 2]], one window of 2 x 2      taps 0 1 2 3      tap 1 is the first 3: position 1 of the flattened x
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any

import numpy as np

from ....graph.dtypes import Array
from ....graph.ops.nn.windows import WindowAttrs, WindowAxis, walk
from ..dense import dense


def strided(x: Array, shape: tuple[int, ...], strides: tuple[int, ...], first_byte: int = 0) -> Array:
    """A read-only view of a dense array, with strides in bytes: `as_strided`, which takes ten times as long."""
    if not x.size:
        return np.empty(shape, x.dtype)
    view: Array = np.ndarray(shape, x.dtype, x, first_byte, strides)
    view.flags.writeable = False
    return view


@dataclass(frozen=True, slots=True, eq=False)
class Sweep:
    """The walk of a window over all spatial axes of one input; two of them are equal only if they are the same."""

    window: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    walks: tuple[WindowAxis, ...]
    output: tuple[int, ...] = field(init=False)
    """number of positions along each spatial axis"""
    has_border: bool = field(init=False)
    """whether the window reaches cells around the input"""

    def __post_init__(self) -> None:
        object.__setattr__(self, "output", tuple(w.output for w in self.walks))
        object.__setattr__(self, "has_border", any(w.before or w.after for w in self.walks))

    @property
    def is_pointwise(self) -> bool:
        """Whether output and input positions are the same: a window of one cell, moved by one."""
        return max(self.window + self.strides) == 1 and not self.has_border

    def padded(self, x: Array, fill: float = 0) -> Array:
        """`x` with the cells around it that the window may reach; `x` itself if there are none."""
        if not self.has_border:
            return x
        sizes = [n + w.before + w.after for n, w in zip(x.shape[1:-1], self.walks, strict=True)]
        result = (
            np.full((x.shape[0], *sizes, x.shape[-1]), fill, x.dtype)
            if fill
            else np.zeros((x.shape[0], *sizes, x.shape[-1]), x.dtype)
        )
        result[self.inside(x.shape[1:-1])] = x
        return result

    def inside(self, sizes: Sequence[int]) -> tuple[slice, ...]:
        """The slices of the padded array that hold the unpadded cells, `sizes` of them."""
        return (slice(None), *(slice(w.before, w.before + n) for n, w in zip(sizes, self.walks, strict=True)))

    def taps(self) -> Sequence[tuple[tuple[int, ...], tuple[slice, ...]]]:
        """Each cell of the window in row-major order, with the slice of the padded array at all output positions."""
        return _taps(self)

    def seen(self, axis: int, offset: int) -> slice:
        """The slice of one spatial axis of the padded array that belongs to window cell `offset`."""
        start, stride = offset * self.dilations[axis], self.strides[axis]
        return slice(
            start, start + (self.walks[axis].output - 1) * stride + 1 if self.walks[axis].output else start, stride
        )

    def covered(self, axis: int, offset: int, size: int) -> tuple[slice, slice]:
        """Along one axis of `size` cells: the outputs for which window cell `offset` lies inside, and their cells."""
        stride, output = self.strides[axis], self.walks[axis].output
        first = offset * self.dilations[axis] - self.walks[axis].before
        start, stop = max(0, -(first // stride)), min(output, (size - 1 - first) // stride + 1)
        if start >= stop:
            return slice(0, 0), slice(0, 0, 1)
        return slice(start, stop), slice(first + start * stride, first + (stop - 1) * stride + 1, stride)

    def patches(self, padded: Array) -> Array:
        """Read-only view [batch, output..., window..., channels] of a padded array."""
        padded = dense(padded)
        outer = [step * s for step, s in zip(padded.strides[1:-1], self.strides, strict=True)]
        inner = [step * d for step, d in zip(padded.strides[1:-1], self.dilations, strict=True)]
        return strided(
            padded,
            (padded.shape[0], *self.output, *self.window, padded.shape[-1]),
            (padded.strides[0], *outer, *inner, padded.strides[-1]),
        )


@lru_cache(1 << 8)
def _taps(walked: Sweep) -> Sequence[tuple[tuple[int, ...], tuple[slice, ...]]]:
    return [
        (tap, (slice(None), *(walked.seen(axis, offset) for axis, offset in enumerate(tap))))
        for tap in product(*map(range, walked.window))
    ]


def sweep(attrs: WindowAttrs, sizes: Sequence[int], window: Sequence[int]) -> Sweep:
    """The walk of a window of size `window` over spatial `sizes`; InvalidArgumentError if it does not fit."""
    walks = tuple(
        walk(n, k, s, d, attrs.padding, e)
        for n, k, s, d, e in zip(sizes, window, attrs.strides, attrs.dilations, attrs.explicit, strict=True)
    )
    return Sweep(tuple(window), attrs.strides, attrs.dilations, walks)


def channels_last(x: Array, attrs: WindowAttrs) -> Array:
    """A view of `x` with its channels moved to the end."""
    return x if attrs.layout.endswith("C") else np.moveaxis(x, 1, -1)


def as_laid_out(x: Array, attrs: WindowAttrs) -> Array:
    """A view of the channels-last `x` in the layout of `attrs`."""
    return x if attrs.layout.endswith("C") else np.moveaxis(x, -1, 1)


def _tap_validity(walked: Sweep, sizes: Sequence[int], tap: Sequence[int]) -> Any:
    """The output positions for which this tap lies inside the input: a mask that broadcasts, None if all of them."""
    mask: Any = True
    for axis, (offset, along_axis, size) in enumerate(zip(tap, walked.walks, sizes, strict=True)):
        if not along_axis.before and not along_axis.after:
            continue
        cells = (
            np.arange(along_axis.output) * walked.strides[axis] + offset * walked.dilations[axis] - along_axis.before
        )
        along = (cells >= 0) & (cells < size)
        mask = mask & along.reshape((1,) * (axis + 1) + (-1,) + (1,) * (len(sizes) - axis))
    return None if np.all(mask) else mask


NumberedTap = tuple[int, tuple[slice, ...], Any]
"""its number, its slice of the padded array, and for which outputs it is inside"""


@lru_cache(64)
def _last_to_first(walked: Sweep, sizes: tuple[int, ...]) -> list[NumberedTap]:
    taps = [(number, seen, _tap_validity(walked, sizes, tap)) for number, (tap, seen) in enumerate(walked.taps())]
    return taps[::-1]


def winners(x: Array, pooled: Array, walked: Sweep) -> Array:
    """For each window the position of its first largest cell (row-major) in the flattened channels-last `x`."""
    padded = walked.padded(x)
    taps = _last_to_first(walked, x.shape[1:-1])
    number: Array = np.zeros(pooled.shape, np.int8 if len(taps) < 128 else np.int32)
    for index, seen, is_inside in taps:  # the first of equal cells writes last
        hit = padded[seen] == pooled
        if is_inside is not None:
            hit &= is_inside
        step = index - number
        step *= hit.view(np.int8)
        number += step
    return _flat_positions(number, x.shape, walked)


def _flat_positions(number: Array, shape: tuple[int, ...], walked: Sweep) -> Array:
    """NumberedTap numbers of windows as positions in the flattened input [batch, spatial..., channels]."""
    batch, sizes, channels = shape[0], shape[1:-1], shape[-1]
    ones = (1,) * len(sizes)
    outputs = prod(walked.output)
    places = number * np.int64(outputs)
    places += np.arange(outputs).reshape(*walked.output, 1)
    positions: Array = _cells(walked, sizes, channels).take(places)
    images, along = np.arange(batch) * (prod(sizes) * channels), np.arange(channels)
    positions += images.reshape(batch, *ones, 1) + along.reshape(1, *ones, channels)
    return positions


@lru_cache(16)
def _cells(walked: Sweep, sizes: tuple[int, ...], channels: int) -> Array:
    """Where the cell that a tap sees from an output begins in a flattened image: [taps, outputs], always inside."""
    taps = np.array(list(np.ndindex(*walked.window)), np.int64).reshape(-1, len(walked.window))
    cells: Array = np.zeros((len(taps),) + (1,) * len(sizes), np.int64)
    for axis, (along_axis, size) in enumerate(zip(walked.walks, sizes, strict=True)):
        start = np.arange(along_axis.output) * walked.strides[axis] - along_axis.before
        seen = start + taps[:, axis, None] * walked.dilations[axis]
        along = np.clip(seen, 0, max(size - 1, 0)).reshape(len(taps), *(1,) * axis, -1, *(1,) * (len(sizes) - axis - 1))
        cells = cells * size + along
    return np.asarray(cells * channels)
