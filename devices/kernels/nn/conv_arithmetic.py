"""The arithmetic of convolutions and their gradients, channels last, for any number of spatial axes.

x is [batch, spatial..., channels], w [window..., channels / groups, features], y [batch, output..., features]. The
three functions are adjoint to each other: <conv(x, w), y> == <x, input_gradient(y, w)> == <w, filter_gradient(x, y)> up
to rounding.

A convolution is one matrix product: patches of x as rows, the filter as columns. Patches are made for a few images at a
time, so that they stay in cache and memory stays bounded. Large convolutions are cut into parts for several cores, by
images, or a single image by lines of its output. The cuts depend on shapes alone, see `linalg.products`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import TypeVar

import numpy as np

from ....graph.dtypes import Array
from ..blas_threads import LIMIT
from ..helpers import HELPERS
from ..linalg.half_products import PLAIN, Arithmetic
from ..linalg.products import GRAIN, WORTH_CUTTING_US, cuts, matrix_product, num_parts, predicted_us
from .depthwise_arithmetic import depthwise, depthwise_filter_gradient, depthwise_input_gradient
from .sliding import Sweep

_PATCH_BYTES = 16 << 20  # patches held at once; measured best between 4 and 64 MiB on a CPU with a 32 MiB cache
_BAND_BYTES = 1 << 20  # patches that one core makes and multiplies at a time; measured best from 0.5 to 2 MiB
_BLAS_SMALL = 100**3  # up to so many multiplications OpenBLAS has another function, with other last bits for
_BLAS_COLUMNS = 16  # columns beyond a multiple of these
_TOTALS_BYTES = 64 << 20  # sums of the gradient of a filter held at once, one for each group of images

Band = tuple[slice, ...]
T = TypeVar("T")


def convolve(x: Array, w: Array, sweep: Sweep, arithmetic: Arithmetic = PLAIN) -> Array:
    """At each output position the sum over the window of x times w: zero if there is nothing to add."""
    if not x.shape[-1] or not w.size:
        return np.zeros((x.shape[0], *sweep.output, w.shape[-1]), x.dtype)
    groups = x.shape[-1] // w.shape[-2]
    if _is_depthwise(groups, w.shape, arithmetic):
        return depthwise(x, w.reshape(*w.shape[:-2], groups, -1), sweep)
    if groups > 1:
        return _in_groups(lambda i: convolve(_part(x, i, groups), _part(w, i, groups), sweep, arithmetic), groups)
    filters = w.reshape(-1, w.shape[-1]) if w.size else w.reshape(prod(w.shape[:-1]), w.shape[-1])
    if sweep.is_pointwise:
        pixels = x.reshape(prod(x.shape[:-1]), x.shape[-1])
        return arithmetic.product(pixels, filters).reshape(*x.shape[:-1], w.shape[-1])
    patches, depth = sweep.patches(sweep.padded(x)), filters.shape[0]
    bands = _bands(patches, filters) if arithmetic is PLAIN else []
    if len(bands) > 1:
        return _convolve_bands(patches, filters, bands)
    products = [
        arithmetic.product(patches[images].reshape(-1, depth), filters)
        for images in _batches(x, prod(sweep.output) * depth)
    ]
    result = products[0] if len(products) == 1 else np.concatenate(products)
    return result.reshape(x.shape[0], *sweep.output, w.shape[-1])


def _is_depthwise(groups: int, window_shape: tuple[int, ...], arithmetic: Arithmetic) -> bool:
    """Whether each group is one channel of an image: all at once they are a depthwise convolution."""
    return groups > 1 and window_shape[-2] == 1 and len(window_shape) == 4 and arithmetic is PLAIN


def _convolve_bands(patches: Array, filters: Array, bands: list[Band]) -> Array:
    """Convolves by parts: patches are [batch, output..., window..., channels], a band is a part of the output.

    The rows of a band are made in a buffer that stays in cache, the same for all bands of a part.
    """
    depth, features = filters.shape
    result = np.empty((*patches.shape[: patches.ndim // 2], features), patches.dtype)

    def compute(some: slice) -> None:
        buffer = np.empty(max(patches[band].size for band in bands[some]), patches.dtype)
        for band in bands[some]:
            seen = patches[band]
            part = buffer[: seen.size]
            np.copyto(part.reshape(seen.shape), seen)
            rows = part.reshape(-1, depth)
            np.matmul(rows, filters, out=result[band].reshape(len(rows), features))

    took_us = predicted_us(result.size // features, depth, features, patches.itemsize)
    with LIMIT.hold():
        HELPERS.run(compute, list(cuts(len(bands), num_parts(took_us))))
    return result


def filter_gradient(
    x: Array, y: Array, window_shape: tuple[int, ...], sweep: Sweep, arithmetic: Arithmetic = PLAIN
) -> Array:
    """The w of shape `window_shape` with <conv(x, v), y> == <v, w> for every filter v."""
    groups = x.shape[-1] // window_shape[-2]
    if _is_depthwise(groups, window_shape, arithmetic):
        by_channel = (*window_shape[:-2], groups, window_shape[-1] // groups)
        return depthwise_filter_gradient(x, y, by_channel, sweep).reshape(window_shape)
    if groups > 1:
        part = (*window_shape[:-1], window_shape[-1] // groups)
        return _in_groups(
            lambda i: filter_gradient(_part(x, i, groups), _part(y, i, groups), part, sweep, arithmetic), groups
        )
    patches, depth, features = sweep.patches(sweep.padded(x)), prod(window_shape[:-1]), window_shape[-1]
    cells = prod(sweep.output) * depth

    def total(images: slice) -> Array:
        result = np.zeros((depth, features), x.dtype)
        for some in _batches(x, cells, images):
            rows = patches[some].reshape(-1, depth)
            arithmetic.add(result, arithmetic.product(rows.T, y[some].reshape(len(rows), features)))
        return result

    took_us = predicted_us(depth, prod(y.shape[:-1]), features, x.itemsize)
    most = _TOTALS_BYTES // max(1, depth * features * x.itemsize) if arithmetic is PLAIN else 1
    first, *others = _by_images(total, x.shape[0], took_us, most)
    for more in others:
        first += more
    return first.reshape(window_shape)


def input_gradient(
    y: Array, w: Array, sizes: tuple[int, ...], channels: int, sweep: Sweep, arithmetic: Arithmetic = PLAIN
) -> Array:
    """The x [batch, *sizes, channels] with <conv(v, w), y> == <v, x> for every input v.

    Shares of the taps are added from the last tap to the first, which is TensorFlow's order.
    """
    groups = channels // w.shape[-2]
    if _is_depthwise(groups, w.shape, arithmetic):
        return depthwise_input_gradient(y, w.reshape(*w.shape[:-2], groups, -1), sizes, sweep)
    if groups > 1:
        return _in_groups(
            lambda i: input_gradient(_part(y, i, groups), _part(w, i, groups), sizes, w.shape[-2], sweep, arithmetic),
            groups,
        )
    filters = w.reshape(prod(w.shape[:-1]), w.shape[-1]).T
    if sweep.is_pointwise:
        pixels = y.reshape(prod(y.shape[:-1]), y.shape[-1])
        return arithmetic.product(pixels, filters).reshape(*y.shape[:-1], channels)
    grown = [n + walk.before + walk.after for n, walk in zip(sizes, sweep.walks, strict=True)]
    padded = np.zeros((y.shape[0], *grown, channels), y.dtype)
    taps = sweep.taps()

    def spread(images: slice) -> None:
        columns, budget = (channels, _BAND_BYTES) if arithmetic is PLAIN else (filters.shape[1], _PATCH_BYTES)
        for some in _batches(y, prod(sweep.output) * columns, images, budget):
            y_part, target = y[some], padded[some]
            rows = y_part.reshape(prod(y_part.shape[:-1]), y_part.shape[-1])
            for (_, seen), share in zip(reversed(taps), _shares(rows, w, arithmetic), strict=True):
                arithmetic.add(target[seen], share.reshape(*y_part.shape[:-1], channels))

    took_us = predicted_us(prod(y.shape[:-1]), *filters.shape, y.itemsize)
    _by_images(spread, y.shape[0], took_us, y.shape[0] if arithmetic is PLAIN else 1)
    return padded[sweep.inside(sizes)]


def _shares(rows: Array, w: Array, arithmetic: Arithmetic) -> Iterator[Array]:
    """What each tap sends from rows of y to the input, from the last tap to the first.

    Each comes from a product of its own, whose numbers lie together: those of one product of all taps lie far apart,
    and adding them takes longer than multiplying. The bits are the same unless BLAS has another function for so small
    a product. Half types are rounded in an order that depends on the number of columns.
    """
    channels, features = w.shape[-2:]
    filters = w.reshape(-1, channels, features)
    is_large = rows.size * channels > _BLAS_SMALL
    if arithmetic is PLAIN and (is_large or channels % _BLAS_COLUMNS == 0):
        return (matrix_product(rows, tap.T if is_large else np.ascontiguousarray(tap.T)) for tap in filters[::-1])
    shares = arithmetic.product(rows, filters.reshape(-1, features).T).reshape(len(rows), -1, channels)
    return (shares[:, tap] for tap in reversed(range(len(filters))))


def _part(array: Array, index: int, groups: int) -> Array:
    """The channels (last axis) of one group."""
    size = array.shape[-1] // groups
    return array[..., index * size : (index + 1) * size]


def _in_groups(compute: Callable[[int], Array], groups: int) -> Array:
    return np.concatenate([compute(index) for index in range(groups)], axis=-1)


def _batches(
    x: Array, cells_per_image: int, images: slice | None = None, budget_bytes: int = _PATCH_BYTES
) -> Iterator[slice]:
    """Slices of the batch, or of some of its images, whose patches fit the budget; at least one."""
    size = max(1, budget_bytes // max(1, cells_per_image * x.itemsize))
    start, stop = (0, x.shape[0]) if images is None else (images.start, images.stop)
    return (slice(at, min(at + size, stop)) for at in range(start, max(start + 1, stop), size))


def _by_images(compute: Callable[[slice], T], images: int, took_us: float, most: int) -> list[T]:
    """The results of `compute` for groups of images, in order: for several groups if that is worth it."""
    groups = list(cuts(images, min(num_parts(took_us), most))) if took_us >= WORTH_CUTTING_US else []
    if len(groups) < 2:
        return [compute(slice(0, images))]
    return HELPERS.run(compute, groups)


def _bands(patches: Array, filters: Array) -> list[Band]:
    """The bands in which a large convolution is computed: groups of images, or lines of a single image.

    Lines are cut along the first axis that has more than one, so that a band is contiguous in the result. A band has a
    few positions at least, as BLAS multiplies a single row in another way.
    """
    images, *output = patches.shape[: patches.ndim // 2]
    positions, (depth, features) = prod(output), filters.shape
    if predicted_us(images * positions, depth, features, filters.itemsize) < WORTH_CUTTING_US:
        return []
    image_bytes = positions * depth * filters.itemsize
    if 2 * image_bytes <= _BAND_BYTES:
        return [(some,) for some in cuts(images, images * image_bytes // _BAND_BYTES + 1)]
    axis = next((axis for axis, size in enumerate(output) if size > 1), 0)
    count = min(round(image_bytes / _BAND_BYTES), positions // GRAIN)
    lines, before = list(cuts(output[axis], count)), (slice(None),) * axis
    return [(slice(image, image + 1), *before, some) for image in range(images) for some in lines]
