"""Shapes of image ops.

Flows in: shapes of images [batch, height, width, channels], and new sizes where they are known. Flows out: shapes of
images. Always holds: batch and channels stay.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidArgumentError
from ...analysis.shape_functions import ShapeContext, merge_dims, shape_fn, with_rank
from ...dtypes import Shape


def _size(c: ShapeContext, index: int) -> tuple[int | None, int | None]:
    """The height and width that input `index` holds."""
    (length,) = with_rank(c.inputs[index], 1)
    merge_dims(length, 2)
    value = c.constant(index)
    if value is None:
        return None, None
    height, width = (int(n) for n in value)
    if height < 0 or width < 0:
        raise InvalidArgumentError(f"Dimension size, given by scalar input {index}, must be non-negative")
    return height, width


@shape_fn("ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic", "ResizeArea", "ResizeNearestNeighborGrad")
def resize(c: ShapeContext) -> Sequence[Shape]:
    """[batch, new height, new width, channels]."""
    images = with_rank(c.inputs[0], 4)
    return ((images[0], *_size(c, 1), images[3]),)


@shape_fn("ResizeBilinearGrad", "ResizeBicubicGrad", "ScaleAndTranslateGrad")
def resize_grad(c: ShapeContext) -> Sequence[Shape]:
    """That of the original image."""
    return (c.inputs[1],)


@shape_fn("ScaleAndTranslate")
def scale_and_translate(c: ShapeContext) -> Sequence[Shape]:
    """As Resize; scale and translation are pairs."""
    for pair in c.inputs[2:]:
        merge_dims(with_rank(pair, 1)[0], 2)
    return resize(c)
