"""Ops that read or write chosen places of a tensor: gathers, slices, scatters, resized and cropped images."""

from __future__ import annotations

from math import prod

from ....kernels.op_cost import CostContext
from .count import CountRule, GrapplerCount, counted, each, text


def _picked(index_inputs: int) -> CountRule:
    """An operation per element picked, which is read and written.

    Of the inputs that say which, TensorFlow adds their elements where it means bytes.
    """

    def rule(c: CostContext) -> GrapplerCount:
        indices = sum(map(c.elements_in, range(1, index_inputs + 1)))
        return GrapplerCount(c.elements_out(), 2 * c.bytes_out() + indices)

    return rule


def _scatter(c: CostContext) -> GrapplerCount:
    """An operation per element of each chosen row, which is read and written. Inputs: tensor, indices, updates."""
    elements = c.elements_in(1) * prod(c.inputs[0][1:])
    item_bytes = c.bytes_in(0) // max(1, c.elements_in(0))
    return GrapplerCount(elements, 2 * elements * item_bytes + c.bytes_in(1) + c.bytes_in(2))


def _resized(c: CostContext) -> GrapplerCount:
    """Weights for each row and column of the result, then 9 operations per element."""
    _, height, width, _ = c.outputs[0]
    per_line = 12 if c.attrs.get("half_pixel_centers") else 10
    return counted(9 * c.elements_out() + per_line * (height + width), c)


def _cropped(c: CostContext) -> GrapplerCount:
    """Per box: 28 operations, some for each row, for each pixel and for each element."""
    boxes, height, width, depth = c.outputs[0]
    per_row, per_pixel, per_element = (7, 7, 13) if text(c, "method", "bilinear") == "bilinear" else (4, 6, 1)
    return counted(boxes * (28 + height * (per_row + width * (per_pixel + depth * per_element))), c)


RULES: dict[str, CountRule] = {
    **each(_picked(1), ("Gather", "GatherV2", "GatherNd")),
    "Slice": _picked(2),
    "StridedSlice": _picked(3),
    **each(_scatter, [f"Scatter{kind}" for kind in ("Add", "Div", "Max", "Min", "Mul", "Sub", "Update")]),
    "ResizeBilinear": _resized,
    "CropAndResize": _cropped,
}
