"""Shape functions of quantisation: the values' shape; an output range has the shape of the input range."""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidArgumentError
from ...analysis.shape_functions import ShapeContext, merge_dims, shape_fn, with_rank
from ...dtypes import Shape


def _ends(c: ShapeContext, low: int) -> Shape:
    """The shape of a range's upper end, input `low` + 1: a scalar, or one number per slice along the axis."""
    axis, values = int(c.attrs["axis"]), c.inputs[0]
    with_rank(c.inputs[low], int(axis >= 0))
    high = with_rank(c.inputs[low + 1], int(axis >= 0))
    if axis >= 0 and values is not None:
        if axis >= len(values):
            raise InvalidArgumentError(f"Axis must be less than input dimension({len(values)}), got {axis}")
        merge_dims(high[0], values[axis])
    return high


@shape_fn("Dequantize", "QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3", "QuantizeAndDequantizeV4")
def elementwise(c: ShapeContext) -> Sequence[Shape]:
    """The values' shape."""
    _ends(c, 1)
    return (c.inputs[0],)


@shape_fn("QuantizeV2")
def quantize(c: ShapeContext) -> Sequence[Shape]:
    """The values' shape, then twice that of a range's end: a scalar, or one per slice along the axis."""
    ends = _ends(c, 1)
    return (c.inputs[0], ends, ends)
