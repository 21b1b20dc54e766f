"""Gradient of Cast: g in the type of x; none where either type is discrete."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...dtypes import DataType

if TYPE_CHECKING:
    from ...builder.handles import Tensor


_CONTINUOUS = frozenset(
    {
        DataType.HALF,
        DataType.BFLOAT16,
        DataType.FLOAT,
        DataType.DOUBLE,
        DataType.COMPLEX64,
        DataType.COMPLEX128,
    }
)


@gradient("Cast")
def cast(op: Forward, grad: Tensor) -> Gradients:
    """g in the type of x, if both types are continuous."""
    source, target = op.input_types[0], op.output_types[0]
    if source not in _CONTINUOUS or target not in _CONTINUOUS:
        return (None,)
    return (op.make("Cast", grad, DstT=source),)
