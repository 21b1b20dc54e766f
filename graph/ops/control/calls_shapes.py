"""Shape functions of ops that call functions, where the results differ from those of the function's body.

The body is not looked at; for plain calls `graph/shape_inference` does that.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidArgumentError
from ...analysis.shape_functions import ShapeContext, shape_fn
from ...dtypes import DataType, Shape


@shape_fn("MapDefun")
def map_defun(c: ShapeContext) -> Sequence[Shape]:
    """One row per row of the arguments, each of the shape that `output_shapes` declares for a single call."""
    promised = c.attrs["output_shapes"]
    if len(promised) != len(c.output_types):
        raise InvalidArgumentError(
            f"`output_shapes` must be the same length as `output_types` ({len(promised)} vs. {len(c.output_types)})"
        )
    rows: int | None = None
    for number, shape in enumerate(c.inputs[: len(c.attrs["Targuments"])]):
        if shape == ():
            raise InvalidArgumentError(f"Arguments must have rank at least 1. Input {number} has rank of 0.")
        if shape is None or shape[0] is None:
            continue
        if rows not in (None, shape[0]):
            raise InvalidArgumentError("Arguments must have the same dimension 0.")
        rows = shape[0]
    return [None if shape is None else (rows, *shape) for shape in promised]


@shape_fn("While", "StatelessWhile")
def loop(c: ShapeContext) -> Sequence[Shape]:
    """The promised shapes; without them those that the variables begin with."""
    promised: Sequence[Shape] = c.attrs["output_shapes"]
    if promised and len(promised) != len(c.output_types):
        raise InvalidArgumentError(
            f"`output_shapes` must be the same length as num outputs ({len(promised)} vs. {len(c.output_types)}"
        )
    return promised or c.inputs


@shape_fn("SymbolicGradient")
def symbolic_gradient(c: ShapeContext) -> Sequence[Shape]:
    """The gradient of an argument has its shape; for a resource it has the value's, unknown at this point."""
    if len(c.inputs) < len(c.output_types):
        raise InvalidArgumentError("len(inputs) < len(outputs)")
    arguments = zip(c.inputs, c.input_types, c.output_types, strict=False)
    return [None if dtype is DataType.RESOURCE else shape for shape, dtype, _ in arguments]
