"""Gradients of CropAndResize with respect to images and boxes.

Samples and weights are those of CropAndResize; samples outside their image have no gradient.
"""

from __future__ import annotations

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, numpy_dtype
from ..checks import require
from ..output_size import output_shape
from ..registry import Construction, Kernel, kernel
from .boxes import check_crop, pixels, sample_places

Corner = tuple[Array, Array, Array | np.float32, Array | np.float32]
"""rows and columns of a corner of every sample, and its weights along both axes, which broadcast against samples"""


def _inside(places: Array, size: int) -> Array:
    return np.asarray((places >= 0) & (places <= size - 1))


def _passed(grads: Array, images: Array, boxes: Array, owners: Array) -> tuple[Array, Array, Array]:
    """The gradient of each sample, and its row and column, moved to the edge if outside the image."""
    check_crop(images, boxes, owners, np.array(grads.shape[1:3]))
    height, width = images.shape[1:3]
    y = sample_places(boxes[:, 0], boxes[:, 2], height, grads.shape[1])
    x = sample_places(boxes[:, 1], boxes[:, 3], width, grads.shape[2])
    inside = _inside(y, height)[:, :, None] & _inside(x, width)[:, None, :]
    places = (np.fmax(np.clip(place, 0, size - 1), 0) for place, size in ((y, height), (x, width)))  # not even NaN
    return np.where(inside[..., None], grads, 0), *places


def _corners(y: Array, x: Array, *, nearest: bool) -> list[Corner]:
    """The four cells that each sample is blended from."""
    if nearest:
        rows, columns = (np.trunc(place + 0.5).astype(np.intp) for place in (y, x))
        return [(rows, columns, np.float32(1), np.float32(1))]
    top, left = np.floor(y), np.floor(x)
    down, along = (y - top)[:, :, None, None], (x - left)[:, None, :, None]
    return [
        (rows.astype(np.intp), columns.astype(np.intp), row_weight, column_weight)
        for rows, row_weight in ((top, 1 - down), (np.ceil(y), down))
        for columns, column_weight in ((left, 1 - along), (np.ceil(x), along))
    ]


@kernel("CropAndResizeGradImage")
def crop_and_resize_grad_image(node: Construction) -> Kernel:
    """The gradient of each sample, distributed over the cells it was blended from, by weight."""
    nearest, dtype = node.attrs["method"] == b"nearest", numpy_dtype(node.output_types[0])

    def back(grads: Array, boxes: Array, owners: Array, shape: Array) -> Array:
        if grads.ndim != 4:
            raise InvalidArgumentError(f"grads image must be 4-D{shape_text(grads.shape)}")
        if shape.ndim != 1:
            raise InvalidArgumentError(f"image_size must be 1-D{shape_text(shape.shape)}")
        require(shape.size == 4, "image_size must have 4 elements")
        require(bool((shape[1:3] > 0).all()), "image dimensions must be positive")
        if boxes.ndim != 2:
            raise InvalidArgumentError(f"boxes must be 2-D{shape_text(boxes.shape)}")
        require(grads.shape[0] == boxes.shape[0], "boxes and grads have incompatible shape")
        require(shape[3] == grads.shape[3] and shape[0] >= 0, "image_size and grads are incompatible")
        images = np.zeros(output_shape(shape.tolist(), np.dtype(np.float32)), np.float32)
        passed, y, x = _passed(grads, images, boxes, owners)
        _, height, width, channels = images.shape
        corners = _corners(y, x, nearest=nearest)
        # sample by sample, with its corners one after the other: float32 numbers are added in TensorFlow's order
        places = np.empty((*passed.shape[:3], len(corners), channels), np.intp)
        shares = np.empty(places.shape, np.float32)
        for number, (rows, columns, row_weight, column_weight) in enumerate(corners):
            cells = ((owners[:, None] * height + rows) * width)[:, :, None] + columns[:, None, :]
            np.add(cells[..., None] * channels, np.arange(channels), out=places[:, :, :, number])
            np.multiply(passed * row_weight, column_weight, out=shares[:, :, :, number])
        np.add.at(images.reshape(-1), places.reshape(-1), shares.reshape(-1))
        return images.astype(dtype, copy=False)

    return back


@kernel("CropAndResizeGradBoxes")
def crop_and_resize_grad_boxes(_node: Construction) -> Kernel:
    """The slope of the image at each sample, times the derivative of its position by either end of its box."""

    def back(grads: Array, images: Array, boxes: Array, owners: Array) -> Array:
        if grads.ndim != 4:
            raise InvalidArgumentError(f"grads image must be 4-D{shape_text(grads.shape)}")
        passed, y, x = _passed(grads, images, boxes, owners)
        require(grads.shape[3] == images.shape[3], "image, grads depth differ")
        down, along = _slopes(images, owners, y, x)
        per_row = (passed * down).sum(axis=(2, 3))
        per_column = (passed * along).sum(axis=(1, 3))
        ends = [_moved(sums, size) for sums, size in zip((per_row, per_column), images.shape[1:3], strict=True)]
        return np.stack([ends[i][k] for k in (0, 1) for i in (0, 1)], axis=1).astype(np.float32)

    return back


def _slopes(images: Array, owners: Array, y: Array, x: Array) -> tuple[Array, Array]:
    """The derivatives of each sample by its row and column."""
    top, left = np.floor(y), np.floor(x)
    down, along = (y - top)[:, :, None, None], (x - left)[:, None, :, None]

    def cell(rows: Array, columns: Array) -> Array:
        return pixels(images, owners, rows.astype(np.intp), columns.astype(np.intp)).astype(np.float32, copy=False)

    corners = [cell(rows, columns) for rows in (top, np.ceil(y)) for columns in (left, np.ceil(x))]
    near, far, below, opposite = corners
    return (
        (below - near) * (1 - along) + (opposite - far) * along,
        (far - near) * (1 - down) + (opposite - below) * down,
    )


def _moved(per_sample: Array, size: int) -> tuple[Array, Array]:
    """The gradients of the first and the last end of each box along an axis of `size` cells."""
    count = per_sample.shape[1]
    share = np.full(1, 0.5) if count == 1 else np.arange(count) / (count - 1)
    return (per_sample * (1 - share)).sum(axis=1) * (size - 1), (per_sample * share).sum(axis=1) * (size - 1)
