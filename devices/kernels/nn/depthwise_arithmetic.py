"""The arithmetic of depthwise convolutions of images and their gradients, channels last.

x is [batch, height, width, channels], w [window height, window width, channels, multiplier], y [batch, output height,
output width, channels * multiplier]. The functions are adjoint to each other, as those of `conv_arithmetic`.

Each function is one `np.einsum` over a view of all windows, which needs no array of products and adds them in the order
of the taps, as TensorFlow does. Half types are rounded after each step, tap after tap.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import gcd, prod

import numpy as np

from ....graph.dtypes import Array
from ..linalg.half_products import PLAIN, Arithmetic
from .sliding import Sweep, strided

_MANY_CHANNELS = 160  # up to so many, a row of all channels is faster than channel by channel


def depthwise(x: Array, w: Array, sweep: Sweep, arithmetic: Arithmetic = PLAIN) -> Array:
    """Each channel of x with filters of its own."""
    channels, multiplier = w.shape[-2:]
    if arithmetic is PLAIN:
        patches = sweep.patches(sweep.padded(_repeated(x, multiplier)))
        return _of_patches(patches, w.reshape(*w.shape[:2], channels * multiplier))
    padded = sweep.padded(x)
    total = np.zeros((x.shape[0], *sweep.output, channels, multiplier), x.dtype)
    for tap, seen in sweep.taps():
        arithmetic.add(total, padded[seen][..., None] * w[tap])
    return total.reshape(*total.shape[:-2], channels * multiplier)


def _repeated(x: Array, multiplier: int) -> Array:
    """Each channel as often as it has filters: so each copy has one filter."""
    return x if multiplier == 1 else np.repeat(x, multiplier, axis=-1)


def _of_patches(patches: Array, w: Array, out: Array | None = None) -> Array:
    """y [batch, height, width, channels] of patches [batch, height, width, window..., channels] and w, one filter each.

    `np.einsum` sums channel by channel, which is slow for few of them. Patches that are one column apart lie in memory
    as the columns do: then all channels of a row of the output are one long axis, with the filters repeated along it.
    """
    batch, height, width, *window, channels = patches.shape
    by_column, by_channel = patches.strides[2], patches.strides[-1]
    is_row = by_channel == patches.itemsize and by_column == channels * by_channel
    if channels > _MANY_CHANNELS or not is_row or not (out is None or out.flags.c_contiguous):
        return np.asarray(np.einsum("nhwijc,ijc->nhwc", patches, w, out=out))
    rows = patches.transpose(0, 1, 3, 4, 2, 5).reshape(batch, height, *window, width * channels)  # still a view
    filters = np.empty((*window, width, channels), w.dtype)
    filters[...] = w[:, :, None]
    lines = None if out is None else out.reshape(batch, height, width * channels)
    result: Array = np.einsum("nhijk,ijk->nhk", rows, filters.reshape(*window, width * channels), out=lines)
    return result.reshape(batch, height, width, channels)


def depthwise_input_gradient(
    y: Array, w: Array, sizes: tuple[int, ...], sweep: Sweep, arithmetic: Arithmetic = PLAIN
) -> Array:
    """The x with <depthwise(v, w), y> == <v, x> for every input v; filters' shares first, then their sum."""
    channels, multiplier = w.shape[-2:]
    if arithmetic is PLAIN:
        result = _spread(y, w.reshape(*w.shape[:2], channels * multiplier), sizes, sweep)
        return result if multiplier == 1 else PLAIN.sum_of_few(result.reshape(*result.shape[:-1], channels, multiplier))
    parts = y.reshape(*y.shape[:-1], channels, multiplier)
    grown = [n + walk.before + walk.after for n, walk in zip(sizes, sweep.walks, strict=True)]
    padded = np.zeros((y.shape[0], *grown, channels, multiplier), y.dtype)
    for tap, seen in sweep.taps():
        arithmetic.add(padded[seen], parts * w[tap])
    return arithmetic.sum_of_few(padded[sweep.inside(sizes)])


@dataclass(frozen=True, slots=True)
class _Phase:
    """Cells of one axis that the same taps reach, each tap from another position of the window.

    For a stride of two and a window of three:

        cells  0 1 2 3 4      even cells: tap 0 of position cell / 2, tap 2 of the position before
        taps   0 1 2          odd cells:  tap 1 of position (cell - 1) / 2
                   0 1 2
    """

    cells: slice
    taps: slice
    first: int
    """the position from which the first tap reaches the first cell"""
    back: int
    """by how many positions that of the next tap lies before"""


@lru_cache(64)
def _phases(sweep: Sweep) -> tuple[tuple[_Phase, ...], ...]:
    """The phases of the first two axes together."""
    return tuple(product(*(_phases_along(sweep, axis) for axis in range(2))))


def _phases_along(sweep: Sweep, axis: int) -> Iterator[_Phase]:
    stride, dilation, before = sweep.strides[axis], sweep.dilations[axis], sweep.walks[axis].before
    step = stride // gcd(stride, dilation)
    for cell in range(stride):
        tap = next((tap for tap in range(step) if (cell + before - tap * dilation) % stride == 0), sweep.window[axis])
        first = (cell + before - tap * dilation) // stride
        yield _Phase(slice(cell, None, stride), slice(tap, None, step), first, step * dilation // stride)


def _spread(y: Array, w: Array, sizes: tuple[int, ...], sweep: Sweep) -> Array:
    """The input gradient with one filter a channel: for each phase the windows of y around its cells, taps reversed."""
    margins = [
        max(0, (window - 1) * dilation // stride + 1)
        for window, dilation, stride in zip(sweep.window, sweep.dilations, sweep.strides, strict=True)
    ]
    inside = [slice(margin, margin + size) for size, margin in zip(y.shape[1:-1], margins, strict=True)]
    grown = [part.stop + margin for part, margin in zip(inside, margins, strict=True)]
    padded = np.zeros((y.shape[0], *grown, y.shape[-1]), y.dtype)
    padded[:, *inside] = y
    by_image, *by_position, by_channel = padded.strides
    result = np.empty((y.shape[0], *sizes, y.shape[-1]), y.dtype)
    for phases in _phases(sweep):
        target = result[:, phases[0].cells, phases[1].cells]
        filters = w[phases[0].taps, phases[1].taps]
        walks = [*zip(phases, margins, by_position, strict=True)]
        start = sum((phase.first + margin) * step for phase, margin, step in walks)
        back = [-phase.back * step for phase, _, step in walks]
        shape = (*target.shape[:-1], *filters.shape)
        patches = strided(padded, shape, (by_image, *by_position, *back, by_channel), start)
        _of_patches(patches, filters, target)
    return result


def depthwise_filter_gradient(
    x: Array, y: Array, window_shape: tuple[int, ...], sweep: Sweep, arithmetic: Arithmetic = PLAIN
) -> Array:
    """The w of shape `window_shape` with <depthwise(x, v), y> == <v, w> for every filter v, image by image."""
    channels, multiplier = window_shape[-2:]
    result = np.zeros(window_shape, x.dtype)
    if arithmetic is PLAIN:
        patches = sweep.patches(sweep.padded(_repeated(x, multiplier)))
        for seen, own in zip(patches, y, strict=True):
            result += np.einsum("hwijc,hwc->ijc", seen, own).reshape(window_shape)
        return result
    parts = y.reshape(y.shape[0], prod(y.shape[1:-1]), channels, multiplier)
    padded = sweep.padded(x)
    for tap, seen in sweep.taps():
        products = padded[seen].reshape(*parts.shape[:2], channels, 1) * parts
        for image in arithmetic.sums_over_rows(products):
            arithmetic.add(result[tap], image)
    return result
