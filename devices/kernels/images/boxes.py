"""Boxes in images: crops, outlines and glimpses around a point.

Images are [batch, height, width, channels], boxes [y1, x1, y2, x2] as fractions of the image. Cells outside an image
are filled, never read.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....errors import InvalidArgumentError, OutOfRangeError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..checks import require
from ..elementwise.whole import whole
from ..half_types import widen
from ..output_size import output_shape
from ..registry import Construction, Kernel, kernel


def sample_places(first: Array, last: Array, size: int, new: int) -> Array:
    """For each box the coordinates of `new` samples on an axis of `size` cells."""
    if new == 1:
        return (0.5 * (first + last) * (size - 1))[:, None].astype(np.float32)
    step = (last - first) * np.float32(size - 1) / np.float32(new - 1)
    return np.asarray(
        first[:, None] * np.float32(size - 1) + np.arange(new, dtype=np.float32) * step[:, None], np.float32
    )


def check_crop(images: Array, boxes: Array, owners: Array, size: Array) -> None:
    """Raises InvalidArgumentError or OutOfRangeError for images, boxes, image numbers or sizes that do not fit."""
    if images.ndim != 4:
        raise InvalidArgumentError(f"input image must be 4-D{shape_text(images.shape)}")
    require(images.shape[1] > 0 and images.shape[2] > 0, "image dimensions must be positive")
    if not (boxes.ndim == 2 and boxes.shape[1] == 4):
        raise InvalidArgumentError(f"boxes must be 2-D{shape_text(boxes.shape)}")
    if owners.shape != boxes.shape[:1]:
        raise InvalidArgumentError(f"box_index has incompatible shape {shape_text(owners.shape)}")
    if size.shape != (2,):
        raise InvalidArgumentError(f"crop_size must have two elements {shape_text(size.shape)}")
    require(bool((size > 0).all()), "crop dimensions must be positive")
    if owners.size and not 0 <= owners.min() <= owners.max() < images.shape[0]:
        raise OutOfRangeError("box_index has values outside [0, batch_size)")


@kernel("CropAndResize")
def crop_and_resize(node: Construction) -> Kernel:
    """Each box of its image, resized to one size; samples outside the image get the extrapolation value."""
    nearest, fill = node.attrs["method"] == b"nearest", np.float32(node.attrs["extrapolation_value"])

    def crop(images: Array, boxes: Array, owners: Array, size: Array) -> Array:
        check_crop(images, boxes, owners, size)
        output_shape((len(boxes), *size.tolist(), images.shape[3]), np.dtype(np.float32))
        height, width = images.shape[1:3]
        y = sample_places(boxes[:, 0], boxes[:, 2], height, int(size[0]))
        x = sample_places(boxes[:, 1], boxes[:, 3], width, int(size[1]))
        inside = ((y >= 0) & (y <= height - 1))[:, :, None] & ((x >= 0) & (x <= width - 1))[:, None, :]
        sample = _nearest_samples if nearest else _linear_samples
        values = sample(images, owners, _within(y, height), _within(x, width))
        return np.where(inside[..., None], values, fill)

    return crop


def _within(places: Array, size: int) -> Array:
    """`places` moved into an axis: `np.clip`, which takes five times as long for a few."""
    return np.asarray(np.minimum(np.maximum(places, 0), size - 1))


def pixels(images: Array, owners: Array, rows: Array, columns: Array) -> Array:
    """The pixels [boxes, rows, columns, channels] at whole rows and columns [boxes, ...] of the images of boxes."""
    batch, height, width, channels = images.shape
    places = ((owners[:, None] * height + rows) * width)[:, :, None] + columns[:, None, :]
    return np.asarray(images.reshape(batch * height * width, channels).take(places, axis=0, mode="clip"))


def _nearest_samples(images: Array, owners: Array, y: Array, x: Array) -> Array:
    rows, columns = (np.trunc(place + 0.5).astype(np.intp) for place in (y, x))
    return pixels(images, owners, rows, columns).astype(np.float32, copy=False)


def _linear_samples(images: Array, owners: Array, y: Array, x: Array) -> Array:
    top, left = np.floor(y).astype(np.intp), np.floor(x).astype(np.intp)
    bottom, right = np.ceil(y).astype(np.intp), np.ceil(x).astype(np.intp)
    x_part, y_part = (x - left)[:, None, :, None], (y - top)[:, :, None, None]

    def blended(rows: Array) -> Array:
        near = pixels(images, owners, rows, left).astype(np.float32, copy=False)
        far = pixels(images, owners, rows, right).astype(np.float32, copy=False)
        return near + (far - near) * x_part

    upper = blended(top)
    return np.asarray(upper + (blended(bottom) - upper) * y_part, np.float32)


# What DrawBoundingBoxes paints with when it is given no colours: yellow, blue, red, lime, purple, and so on.
_COLOURS = np.array(
    [
        (1, 1, 0, 1), (0, 0, 1, 1), (1, 0, 0, 1), (0, 1, 0, 1), (0.5, 0, 0.5, 1),
        (0.5, 0.5, 0, 1), (0.5, 0, 0, 1), (0, 0, 0.5, 1), (0, 1, 1, 1), (1, 0, 1, 1),
    ],
    np.float32,
)  # fmt: skip


@kernel("DrawBoundingBoxes", "DrawBoundingBoxesV2")
def draw_bounding_boxes(node: Construction) -> Kernel:
    """The images with the outline of each box painted over them, one colour per box number."""

    def draw(images: Array, boxes: Array, colours: Array | None = None) -> Array:
        require(images.ndim == 4, "The rank of the images should be 4")
        depth = images.shape[-1]
        require(boxes.ndim == 3 and boxes.shape[2] == 4, "The size of the third dimension of the box must be 4.")
        require(images.shape[0] == boxes.shape[0], "The batch sizes should be the same")
        require(depth in (1, 3, 4), "Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA)")
        table = _COLOURS if colours is None or not colours.size else np.asarray(colours)
        painted = images.copy()
        for image, own in zip(painted, boxes, strict=True):
            for number, box in enumerate(own):
                colour = np.ones(1) if depth == 1 and table is _COLOURS else table[number % len(table), :depth]
                _outline(image, box, colour.astype(images.dtype))
        return painted

    return draw


def _outline(image: Array, box: Array, colour: Array) -> None:
    """Paints the sides of `box` that lie inside into `image`, in place."""
    height, width = image.shape[:2]
    top, bottom = (whole(edge) for edge in widen(box)[[0, 2]] * (height - 1))
    left, right = (whole(edge) for edge in widen(box)[[1, 3]] * (width - 1))
    if top > bottom or left > right or top >= height or bottom < 0 or left >= width or right < 0:
        return
    rows = slice(max(top, 0), min(bottom, height - 1) + 1)
    columns = slice(max(left, 0), min(right, width - 1) + 1)
    for row in (top, bottom):
        if 0 <= row < height:
            image[row, columns] = colour
    for column in (left, right):
        if 0 <= column < width:
            image[rows, column] = colour


@kernel("ExtractGlimpse", "ExtractGlimpseV2")
def extract_glimpse(node: Construction) -> Kernel:
    """A window of one size around a point of each image; cells outside the image are zero or noise.

    TensorFlow draws the noise from a generator that cannot be seeded, so only its distribution is the same.
    """
    attrs, noise_source = node.attrs, np.random.default_rng(node.state.random_words(node.name))
    start = _glimpse_start(node.op, bool(attrs["centered"]), bool(attrs["normalized"]))
    noise = attrs["noise"].decode()
    noise = ("uniform" if attrs["uniform_noise"] else "gaussian") if noise == "uniform" else noise

    def glimpse(images: Array, size: Array, offsets: Array) -> Array:
        if images.ndim != 4:
            raise InvalidArgumentError(f"input must be 4-dimensional{shape_text(images.shape)}")
        if size.shape != (2,):
            raise InvalidArgumentError(f"input must be a vector of size 2 (height, width){shape_text(size.shape)}")
        for length in size.tolist():
            require(length >= 0, f"Expected a non-negative size, got {length}")
        require(offsets.shape == (images.shape[0], 2), "offsets should have the shape [batch_size, 2]")
        shape = (images.shape[0], int(size[0]), int(size[1]), images.shape[3])
        result = np.zeros(output_shape(shape, np.dtype(np.float32)), np.float32)
        if noise == "uniform":
            result[:] = noise_source.random(shape) * (float(images.max(initial=0)) or 1)
        elif noise == "gaussian":
            result[:] = noise_source.standard_normal(shape)
        for target, image, offset in zip(result, images, offsets, strict=True):
            axes = zip(map(float, offset), image.shape[:2], shape[1:3], strict=True)
            spans = [_visible(start(place, n, m), n, m) for place, n, m in axes]
            target[spans[0][0], spans[1][0]] = image[spans[0][1], spans[1][1]]
        return result

    return glimpse


def _glimpse_start(op: str, centered: bool, normalized: bool) -> Callable[[float, int, int], int]:
    """From (offset, image size, window size) to the first cell of the window on one axis.

    Version one halves even offsets in cells and takes every offset for the window's middle; version two takes an
    offset for the middle only where it is centred and normalised.
    """
    first = op == "ExtractGlimpse"

    def start(offset: float, size: int, window: int) -> int:
        cells = offset * size if normalized else offset
        if centered:
            cells = (cells + size) / 2 if normalized or first else cells + size / 2
        return whole(cells - window / 2 if first or (centered and normalized) else cells)

    return start


def _visible(start: int, size: int, window: int) -> tuple[slice, slice]:
    """The part of a window from `start` on that lies on the axis: as slices of the window and of the axis."""
    low, high = max(start, 0), min(start + window, size)
    if low >= high:
        return slice(0, 0), slice(0, 0)
    return slice(low - start, high - start), slice(low, high)
