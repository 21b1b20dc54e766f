"""Shapes of quantisation.

Flows in: the shape of the values, and of the ends of their range. Flows out: the values' shape; a range that is put out
has the shape of the one that came in. Always holds: quantisation is elementwise.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...dtypes import Shape
from .registry import ShapeContext, shape_fn, unchanged

shape_fn("Dequantize", "QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3", "QuantizeAndDequantizeV4")(unchanged)


@shape_fn("QuantizeV2")
def quantize(c: ShapeContext) -> Sequence[Shape]:
    """The values' shape, then twice that of a range's end: a scalar, or one per slice along the axis."""
    values, axis = c.inputs[0], int(c.attrs["axis"])
    if axis < 0:
        return (values, (), ())
    ends: Shape = (None if values is None else values[axis],)
    return (values, ends, ends)
