"""Shape functions of layer normalisation and its gradient."""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidArgumentError
from ...analysis.shape_functions import ShapeContext, merge, shape_fn, shape_text, with_rank
from ...dtypes import Shape
from .attention_sizes import check_statistics_type


@shape_fn("Partita>LayerNorm")
def layer_norm(c: ShapeContext) -> Sequence[Shape]:
    """[..., n], [n], [n] -> [..., n], [...], [...]."""
    x, rows, _ = _normalised(c, ("gain", "offset"))
    return x, rows, rows


@shape_fn("Partita>LayerNormGrad")
def layer_norm_grad(c: ShapeContext) -> Sequence[Shape]:
    """The shapes of x and gain, and of the offset, which is as long."""
    x, rows, gain = _normalised(c, ("gain",))
    for port, (name, shape) in enumerate((("mean", rows), ("inverse_deviation", rows), ("d_y", x)), 2):
        try:
            merge(c.inputs[port], shape)
        except InvalidArgumentError:
            raise InvalidArgumentError(
                f"{name} has the shape {shape_text(c.inputs[port])}, but by x it is {shape_text(shape)}"
            ) from None
    return x, gain, gain


def _normalised(c: ShapeContext, of_columns: Sequence[str]) -> tuple[Shape, Shape, Shape]:
    """The shape of x, that of the numbers per row, and that of the numbers per column, inputs 1 and on."""
    check_statistics_type(c.op, c.attrs["T"], c.attrs["U"])
    x, size = c.inputs[0], None
    for port, name in enumerate(of_columns, 1):
        (given,) = with_rank(c.inputs[port], 1)
        if x is not None and (not x or (given is not None and x[-1] not in (None, given))):
            raise InvalidArgumentError(
                f"x has the shape {shape_text(x)} and {name} {shape_text(c.inputs[port])}; the last axis of x must be "
                f"as long as {name}"
            )
        if size is not None and given not in (None, size):
            raise InvalidArgumentError(f"gain has {size} elements and {name} {given}; give as many")
        size = given if size is None else size
    if x is None:
        return None, None, (size,)
    size = x[-1] if size is None else size
    return (*x[:-1], size), x[:-1], (size,)
