"""Resizing of images [batch, height, width, channels]: bilinear, nearest, bicubic and area, and their gradients.

Rows and columns are resized independently, each with one matrix of weights. Results are float32 except for nearest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, numpy_dtype
from ..checks import require
from ..dense import of_dense
from ..half_types import is_half
from ..linalg.products import batch_product
from ..output_size import output_shape
from ..registry import Construction, Kernel, kernel

# (input size, output size) -> weights [output, input] of one axis
AxisWeights = Callable[[int, int], Array]

_MANY_CHANNELS = 8
_CACHED = 1 << 16  # float32 numbers of a part of the batch: four arrays of them stay in a cache of a megabyte


def _check_attrs(node: Construction) -> tuple[bool, bool]:
    align, half = bool(node.attrs["align_corners"]), bool(node.attrs.get("half_pixel_centers", False))
    if align and half:
        raise InvalidArgumentError("If half_pixel_centers is True, align_corners must be False.")
    return align, half


def _new_size(images: Array, size: Array, channels: int = 1) -> tuple[int, int]:
    if images.ndim != 4:
        raise InvalidArgumentError(f"input must be 4-dimensional{shape_text(images.shape)}")
    if size.ndim != 1:
        raise InvalidArgumentError(f"shape_t must be 1-dimensional{shape_text(size.shape)}")
    if size.shape[0] != 2:
        raise InvalidArgumentError(f"shape_t must have two elements{shape_text(size.shape)}")
    height, width = int(size[0]), int(size[1])
    require(height > 0 and width > 0, "output dimensions must be positive")
    require(min(images.shape[1:3]) > 0 and images.shape[3] >= channels, "input image must be of non-zero size")
    output_shape((images.shape[0], height, width, images.shape[3]), np.dtype(np.float32))
    return height, width


def _scale(size: int, new: int, align: bool) -> np.float32:
    """Input cells per output cell; with aligned corners the outer cells' centres coincide."""
    return np.float32((size - 1) / (new - 1) if align and new > 1 else size / new)


def _sources(size: int, new: int, align: bool, half: bool) -> Array:
    """The coordinate of each output cell on the input axis, in float32 as TensorFlow computes it."""
    cells, scale = np.arange(new, dtype=np.float32), _scale(size, new, align)
    if half:
        return (cells + np.float32(0.5)) * scale - np.float32(0.5)
    return cells * scale


def _linear(size: int, new: int, align: bool, half: bool) -> tuple[Array, Array, Array]:
    """The two input cells around each output cell, and its distance from the first as a fraction."""
    source = _sources(size, new, align, half)
    floor = np.floor(source)
    lower = np.maximum(floor.astype(np.intp), 0)
    upper = np.minimum(np.ceil(source).astype(np.intp), size - 1)
    return np.minimum(lower, size - 1), upper, source - floor


@kernel("ResizeBilinear")
def resize_bilinear(node: Construction) -> Kernel:
    """Each output cell is the linear blend of the four input cells around it."""
    align, half = _check_attrs(node)
    linear = lru_cache(maxsize=32)(lambda size, new: _linear(size, new, align, half))

    def resize(images: Array, size: Array) -> Array:
        height, width = _new_size(images, size)
        batch, old_height, old_width, channels = images.shape
        top, bottom, y_part = linear(old_height, height)
        left, right, x_part = linear(old_width, width)
        # Cells are copied whole, or number by number: numpy is slow at copying pieces of a few numbers.
        parts = channels if channels < _MANY_CHANNELS else 1
        left, right = (np.add.outer(cells * parts, np.arange(parts)).ravel() for cells in (left, right))
        x_part, y_part = np.repeat(x_part, channels), y_part[:, None]
        result = np.empty((batch, height, width * channels), np.float32)
        for some in _in_cache(batch, max(height, old_height) * width * channels):
            wide = images[some].astype(np.float32, copy=False)
            wide = wide.reshape(-1, old_height, old_width * parts, channels // max(1, parts))
            near, far = (wide.take(cells, 2, mode="clip").reshape(len(wide), old_height, -1) for cells in (left, right))
            rows = _blended(near, far, x_part)
            _blended(rows.take(top, 1, mode="clip"), rows.take(bottom, 1, result[some], mode="clip"), y_part)
        return result.reshape(batch, height, width, channels)

    return resize


def _in_cache(batch: int, numbers: int) -> Iterator[slice]:
    """Slices of a batch with so many numbers an image that are computed in the cache; one image at least."""
    step = max(1, _CACHED // max(1, numbers))
    return (slice(start, start + step) for start in range(0, batch, step))


def _blended(near: Array, far: Array, part: Array) -> Array:
    """near + (far - near) * part, in place of `far`."""
    far -= near
    far *= part
    far += near
    return far


def _linear_weights(align: bool, half: bool) -> AxisWeights:
    @lru_cache(maxsize=32)
    def weights(size: int, new: int) -> Array:
        lower, upper, part = _linear(size, new, align, half)
        return _weights(size, [(lower, 1 - part), (upper, part)])

    return weights


def _weights(size: int, terms: list[tuple[Array, Array]]) -> Array:
    """The matrix [output, size] with each term's factors at its input cells."""
    rows = np.arange(len(terms[0][0]))
    result = np.zeros((rows.size, size), np.float32)
    for cells, factors in terms:
        np.add.at(result, (rows, cells), factors)
    return result


def _resized(images: Array, rows: Array, columns: Array) -> Array:
    """The product rows @ image @ columns.T for each image and channel."""
    batch, height, width, channels = images.shape
    tall = batch_product(rows, images.reshape(batch, height, width * channels))
    return batch_product(columns, tall.reshape(batch, rows.shape[0], width, channels))


def _resize_gradient(node: Construction, weights: AxisWeights) -> Kernel:
    """The transpose of a resize: gradients [batch, new...] back to the size of the original image."""
    target = numpy_dtype(node.output_types[0])
    wide = np.dtype(np.float32) if is_half(target) else target

    def gradient(grads: Array, original: Array) -> Array:
        if grads.ndim != 4:
            raise InvalidArgumentError(f"input_grad must be 4-dimensional{shape_text(grads.shape)}")
        if original.ndim != 4:
            raise InvalidArgumentError(f"original_image must be 4-dimensional{shape_text(original.shape)}")
        require(original.shape[1] > 0 and original.shape[2] > 0, "original image must be of non-zero size")
        require(grads.shape[1] > 0 and grads.shape[2] > 0, "input_grad must be of non-zero size")
        rows = weights(original.shape[1], grads.shape[1]).T.astype(wide, copy=False)
        columns = weights(original.shape[2], grads.shape[2]).T.astype(wide, copy=False)
        return _resized(grads.astype(wide, copy=False), rows, columns).astype(target, copy=False)

    return of_dense(gradient)


@kernel("ResizeBilinearGrad")
def resize_bilinear_grad(node: Construction) -> Kernel:
    """The gradient of ResizeBilinear with respect to its images."""
    return _resize_gradient(node, _linear_weights(*_check_attrs(node)))


def _nearest(size: int, new: int, align: bool, half: bool) -> Array:
    scale = _scale(size, new, align)
    cells = np.arange(new, dtype=np.float32)
    source = (cells + np.float32(0.5)) * scale if half else cells * scale
    rounded = np.floor(source + np.float32(0.5)) if align else np.floor(source)
    return np.asarray(np.clip(rounded.astype(np.intp), 0, size - 1))


@kernel("ResizeNearestNeighbor")
def resize_nearest_neighbor(node: Construction) -> Kernel:
    """Each output cell is a copy of one input cell."""
    align, half = _check_attrs(node)
    nearest = lru_cache(maxsize=32)(lambda size, new: _nearest(size, new, align, half))

    def resize(images: Array, size: Array) -> Array:
        height, width = _new_size(images, size)
        rows, columns = nearest(images.shape[1], height), nearest(images.shape[2], width)
        result: Array = images[:, rows[:, None], columns]
        return result

    return resize


@kernel("ResizeNearestNeighborGrad")
def resize_nearest_neighbor_grad(node: Construction) -> Kernel:
    """The gradient of ResizeNearestNeighbor: the sum of the gradients of all copies of a cell."""
    align, half = _check_attrs(node)
    target = numpy_dtype(node.output_types[0])
    wide = np.dtype(np.float32) if is_half(target) else target

    def gradient(grads: Array, size: Array) -> Array:
        height, width = _new_size(grads, size, channels=0)
        sizes = ((height, grads.shape[1]), (width, grads.shape[2]))
        cells = [_nearest(old, new, align, half) for old, new in sizes]
        copies = [np.bincount(of_axis, minlength=old) for of_axis, (old, _) in zip(cells, sizes, strict=True)]
        grads = grads.astype(wide, copy=False)
        if all(np.ptp(counts) == 0 for counts in copies):  # blocks of copies: summed in TensorFlow's order
            blocks = grads.reshape(len(grads), height, copies[0][0], width, copies[1][0], grads.shape[3])
            return np.asarray(np.add.reduce(blocks, axis=(2, 4)).astype(target, copy=False))
        matrices = [np.zeros((old, new), wide) for old, new in sizes]
        for matrix, of_axis in zip(matrices, cells, strict=True):
            matrix[of_axis, np.arange(len(of_axis))] = 1
        return _resized(grads, *matrices).astype(target, copy=False)

    return gradient


_CUBIC_STEPS = 1 << 10  # TensorFlow tabulates the cubic kernel at this many points per cell


def _cubic_table(a: float) -> tuple[Array, Array]:
    """Keys' cubic convolution kernel (1981) at distances [0, 1] and [1, 2]."""
    x = np.arange(_CUBIC_STEPS + 1) / _CUBIC_STEPS
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    y = x + 1
    far = ((a * y - 5 * a) * y + 8 * a) * y - 4 * a
    return near.astype(np.float32), far.astype(np.float32)


def _cubic_weights(align: bool, half: bool) -> AxisWeights:
    near, far = _cubic_table(-0.5 if half else -0.75)

    @lru_cache(maxsize=32)
    def weights(size: int, new: int) -> Array:
        source = _sources(size, new, align, half)
        cell = np.floor(source).astype(np.intp)
        offset = np.rint((source - cell.astype(np.float32)) * _CUBIC_STEPS).astype(np.intp)
        back = _CUBIC_STEPS - offset
        terms = [(cell - 1, far[offset]), (cell, near[offset]), (cell + 1, near[back]), (cell + 2, far[back])]
        if not half:
            return _weights(size, [(np.clip(at, 0, size - 1), factor) for at, factor in terms])
        inside = [(np.clip(at, 0, size - 1), np.where((at >= 0) & (at < size), factor, 0)) for at, factor in terms]
        total: Any = sum(
            factor for _, factor in inside
        )  # cells outside have no weight; the others are scaled to sum to one
        total = np.where(np.abs(total) >= 1000 * np.finfo(np.float32).tiny, total, 1)
        return _weights(size, [(at, factor / total) for at, factor in inside])

    return weights


@kernel("ResizeBicubic")
def resize_bicubic(node: Construction) -> Kernel:
    """Each output cell is the cubic blend of the sixteen input cells around it."""
    weights = _cubic_weights(*_check_attrs(node))

    def resize(images: Array, size: Array) -> Array:
        height, width = _new_size(images, size)
        wide = images.astype(np.float32, copy=False)
        return _resized(wide, weights(images.shape[1], height), weights(images.shape[2], width))

    return resize


@kernel("ResizeBicubicGrad")
def resize_bicubic_grad(node: Construction) -> Kernel:
    """The gradient of ResizeBicubic with respect to its images."""
    return _resize_gradient(node, _cubic_weights(*_check_attrs(node)))


def _area_weights(size: int, new: int, align: bool) -> Array:
    """The share of each input cell in each output cell; parts beyond the last cell count as the last."""
    scale = float(_scale(size, new, align))
    if scale == 0:  # one input cell with aligned corners: every output cell lies on it
        return np.ones((new, size), np.float32)
    start = np.arange(new)[:, None] * scale
    end = start + scale
    cells = np.arange(size)[None, :]
    ends = np.where(cells == size - 1, np.inf, cells + 1)
    covered = np.clip(np.minimum(ends, end) - np.maximum(cells, start), 0, None)
    return np.asarray(covered / scale, np.float32)


@kernel("ResizeArea")
def resize_area(node: Construction) -> Kernel:
    """Each output cell is the mean of the area of the input that it covers."""
    align = bool(node.attrs["align_corners"])
    weights = lru_cache(maxsize=32)(lambda size, new: _area_weights(size, new, align))

    def resize(images: Array, size: Array) -> Array:
        height, width = _new_size(images, size)
        wide = images.astype(np.float32, copy=False)
        return _resized(wide, weights(images.shape[1], height), weights(images.shape[2], width))

    return resize
