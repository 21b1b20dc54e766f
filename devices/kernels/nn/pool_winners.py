"""Which cell of each window of a maximum pooling is the first largest one, in row-major order.

    x [[1 3] [3 2]], one window of 2 x 2      taps 0 1 2 3      tap 1 is the first 3: position 1 of the flattened x

What depends on the walk of the window and on sizes alone is worked out once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from ....graph.dtypes import Array
from .sliding import Sweep


def _tap_validity(walked: Sweep, sizes: Sequence[int], tap: Sequence[int]) -> Any:
    """The output positions for which this tap lies inside the input: a mask that broadcasts, None if all of them."""
    mask: Any = True
    for axis, (offset, walk, size) in enumerate(zip(tap, walked.walks, sizes, strict=True)):
        if not walk.before and not walk.after:
            continue
        cells = np.arange(walk.output) * walked.strides[axis] + offset * walked.dilations[axis] - walk.before
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
    for axis, (walk, size) in enumerate(zip(walked.walks, sizes, strict=True)):
        start = np.arange(walk.output) * walked.strides[axis] - walk.before
        seen = start + taps[:, axis, None] * walked.dilations[axis]
        along = np.clip(seen, 0, max(size - 1, 0)).reshape(len(taps), *(1,) * axis, -1, *(1,) * (len(sizes) - axis - 1))
        cells = cells * size + along
    return np.asarray(cells * channels)
