"""Random crops of an image that keep a part of an object (SampleDistortedBoundingBox): TensorFlow's for the same seeds.

An attempt draws an aspect ratio, then a height among those whose area is in the range allowed, then a place; it counts
if the crop covers enough of one of the boxes. After the last attempt the whole image is the crop.

Arithmetic is that of TensorFlow, in float32 and rounded to even, because each rounding decides about a pixel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, numpy_dtype
from ..checks import require
from ..random import philox
from ..random.philox import Position
from ..random.random_ops import generator_of, scrambled
from ..random.words import Words, below
from ..registry import Construction, Kernel, kernel

_FLOAT = np.dtype(np.float32)
_INT32_MAX = (1 << 31) - 1


class _Rectangle(NamedTuple):
    """Pixels from `left` to before `right`, from `top` to before `bottom`."""

    left: int
    top: int
    right: int
    bottom: int

    @property
    def area(self) -> int:
        return (self.right - self.left) * (self.bottom - self.top)

    def shared(self, other: _Rectangle) -> int:
        """The area of the intersection."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(width, 0) * max(height, 0)


class _Limits(NamedTuple):
    """The attrs: smallest and largest aspect ratio (width by height) and share of the area, attempts, and a default."""

    aspects: Array
    areas: Array
    attempts: int
    uses_image: bool


def _limits(attrs: Mapping[str, Any]) -> _Limits:  # attrs of several types
    aspects, areas = (np.array(attrs[f"{name}_range"], np.float32) for name in ("aspect_ratio", "area"))
    attempts = int(attrs["max_attempts"])
    for what, values in (("Aspect ratio", aspects), ("Area", areas)):
        require(len(values) == 2, f"{what} range field must specify 2 dimensions")
        require(bool((values > 0).all()), f"{what} range must be non-negative: {_text(values)}")
    require(bool((areas <= 1).all()), f"Area range must be less then or equal to 1.0: {_text(areas)}")
    require(attempts > 0, f"Max attempts must be non-negative: {attempts}")
    return _Limits(aspects, areas, attempts, bool(attrs["use_image_if_no_bounding_boxes"]))


def _text(values: Array) -> str:
    return f"[{', '.join(f'{value:g}' for value in values.tolist())}]"


def _check_covered(least: Any) -> None:  # a Python or numpy float
    require(bool(least >= 0), f"Min object covered must be non-negative: {float(least):g}")


def _image_size(size: Array) -> tuple[int, int]:
    """Height and width; InvalidArgumentError unless `size` is [height, width, channels]."""
    require(size.ndim == 1, f"image_size must be 1-dimensional{shape_text(size.shape)}")
    require(len(size) == 3, f"image_size must contain 3 elements{shape_text(size.shape)}")
    height, width = int(size[0]), int(size[1])
    require(0 <= height < _INT32_MAX, "image height cannot be >= int32 max")
    require(0 <= width < _INT32_MAX, "image width cannot be >= int32 max")
    return height, width


def _objects(boxes: Array, height: int, width: int, limits: _Limits) -> list[_Rectangle]:
    """The boxes in pixels, or the whole image where there is none."""
    require(boxes.ndim == 3, f"input boxes must be 3-dimensional [batch, num_boxes, coords]: {shape_text(boxes.shape)}")
    require(boxes.shape[2] == 4, f"bounding boxes must have shape [4] or [*, 4], got {shape_text(boxes.shape)}")
    outside = boxes[~((boxes >= 0) & (boxes <= 1))]
    if outside.size:
        require(False, f"All bounding box coordinates must be in [0.0, 1.0]: {float(outside[0]):g}")
    if not boxes.size:
        require(
            limits.uses_image,
            "No bounding boxes provided as input. One must enable use_image_if_no_bounding_boxes if you wish to not "
            "provide any bounding boxes.",
        )
        return [_Rectangle(0, 0, width, height)]
    pixels = (boxes.reshape(-1, 4) * np.array([height, width, height, width], np.float32)).astype(np.int32).tolist()
    return [_Rectangle(left, top, right, bottom) for top, left, bottom, right in pixels]


def _rounded(value: np.float32) -> int:
    return int(np.rint(value))


def _heights(areas: Array, aspect: np.float32, height: int, width: int) -> tuple[int, int]:
    """The lowest and the highest height of crops of these areas and this aspect ratio that fit into the image."""
    lowest, highest = (_rounded(np.sqrt(area / aspect)) for area in areas)
    if _rounded(np.float32(highest) * aspect) > width:
        highest = int((width + 0.5 - float(np.float32(1e-7))) / float(aspect))
        highest -= _rounded(np.float32(highest) * aspect) > width
    highest = min(highest, height)
    return min(lowest, highest), highest


def _crop(words: Words, limits: _Limits, height: int, width: int) -> _Rectangle | None:
    """One attempt; None where no crop of the aspect ratio drawn has an area in the range."""
    low, high = limits.aspects
    aspect = philox.uniform_from(words.take(1), _FLOAT)[0] * (high - low) + low
    areas = limits.areas * np.float32(width) * np.float32(height)
    smallest, largest = areas
    if not width or not height or limits.areas[0] > limits.areas[1] or aspect <= 0:
        return None
    rows, most = _heights(areas, aspect, height, width)
    if rows < most:
        rows += int(below(words, most - rows + 1, 1)[0])
    columns = _rounded(np.float32(rows) * aspect)
    # Where rounding has led out of the range of areas, the next height may be right.
    if np.float32(columns * rows) < smallest:
        rows, columns = rows + 1, _rounded(np.float32(rows + 1) * aspect)
    if np.float32(columns * rows) > largest:
        rows, columns = rows - 1, _rounded(np.float32(rows - 1) * aspect)
    if not (smallest <= columns * rows <= largest and 0 < columns <= width and 0 < rows <= height):
        return None
    top = int(below(words, height - rows, 1)[0]) if rows < height else 0
    left = int(below(words, width - columns, 1)[0]) if columns < width else 0
    return _Rectangle(left, top, left + columns, top + rows)


def _covers(crop: _Rectangle, objects: list[_Rectangle], least: np.float32) -> bool:
    """Whether the crop covers that share of an object at least; objects without a pixel do not count."""
    return crop.area >= 1 and any(
        np.float32(thing.shared(crop)) / np.float32(thing.area) >= least for thing in objects if thing.area >= 1
    )


def _sampler(node: Construction) -> Callable[[Callable[[], Position], Array, Array, Any], tuple[Array, Array, Array]]:
    """A function from a place in a stream, an image's size, boxes and a share: begin, size and box of a crop."""
    limits, dtype = _limits(node.attrs), numpy_dtype(node.output_types[0])

    def sample(place: Callable[[], Position], size: Array, boxes: Array, least: Any) -> tuple[Array, Array, Array]:
        height, width = _image_size(size)
        objects = _objects(boxes, height, width, limits)
        words, share, crop = Words(place()), np.float32(least), _Rectangle(0, 0, width, height)
        for _ in range(limits.attempts):
            attempt = _crop(words, limits, height, width)
            if attempt is not None and _covers(attempt, objects, share):
                crop = attempt
                break
        begin = np.array([crop.top, crop.left, 0]).astype(dtype)
        extent = np.array([crop.bottom - crop.top, crop.right - crop.left, -1]).astype(dtype)
        corners = np.array([crop.top, crop.left, crop.bottom, crop.right], np.float32)
        box = corners / np.array([height, width, height, width], np.float32)
        return begin, extent, box.reshape(1, 1, 4)

    return sample


@kernel("SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2")
def sample_distorted_bounding_box(node: Construction) -> Kernel:
    """Crops by the seeds of the node; each run of the node draws the following ones."""
    sample, generator, attempts = _sampler(node), generator_of(node), int(node.attrs["max_attempts"])
    if node.op == "SampleDistortedBoundingBox":
        fixed = node.attrs["min_object_covered"]
        _check_covered(fixed)
        return lambda size, boxes: sample(lambda: generator().reserve(attempts), size, boxes, fixed)

    def sample_v2(size: Array, boxes: Array, least: Array) -> tuple[Array, Array, Array]:
        _check_share(least)
        return sample(lambda: generator().reserve(attempts), size, boxes, least)

    return sample_v2


def _check_share(least: Array) -> None:
    require(np.ndim(least) == 0, f"min_object_covered must be 0-D, got shape {shape_text(np.shape(least))}")
    _check_covered(least)


@kernel("StatelessSampleDistortedBoundingBox")
def stateless_sample_distorted_bounding_box(node: Construction) -> Kernel:
    """A crop by the seed given."""
    sample = _sampler(node)

    def sample_by_seed(size: Array, boxes: Array, least: Array, seed: Array) -> tuple[Array, Array, Array]:
        _check_share(least)
        return sample(lambda: scrambled(seed), size, boxes, least)

    return sample_by_seed
