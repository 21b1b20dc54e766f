"""Shape functions of scatters; each update must have the shape that its index leaves of the tensor."""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidArgumentError
from ...analysis.dims import shape_from
from ...analysis.shape_functions import ShapeContext, merge, num_elements, shape_fn, with_rank_at_least
from ...dtypes import Shape


def _check(indices: Shape, updates: Shape, result: Shape) -> None:
    if indices is None or updates is None or indices[-1:] in ((), (None,)):
        return
    batch, depth = len(indices) - 1, indices[-1] or 0
    merge(updates[:batch], indices[:-1])
    if result is None:
        return
    merge(updates[batch:], result[depth:])


def _check_filled(indices: Shape, updates: Shape, result: Shape, what: str) -> None:
    if result is not None and 0 in result and (num_elements(indices) or num_elements(updates)):
        raise InvalidArgumentError(f"Indices and updates specified for empty {what}")


@shape_fn("ScatterNd")
def scatter_nd(c: ShapeContext) -> Sequence[Shape]:
    """The shape that the input `shape` holds."""
    indices, updates = with_rank_at_least(c.inputs[0], 1), with_rank_at_least(c.inputs[1], 1)
    result = shape_from(c, 2)
    _check_filled(indices, updates, result, "output")
    _check(indices, updates, result)
    return (result,)


@shape_fn(
    "ScatterNdNonAliasingAdd",
    "TensorScatterAdd",
    "TensorScatterSub",
    "TensorScatterMax",
    "TensorScatterMin",
    "TensorScatterUpdate",
)
def tensor_scatter(c: ShapeContext) -> Sequence[Shape]:
    """The shape of the tensor that is scattered into."""
    _check_filled(c.inputs[1], c.inputs[2], c.inputs[0], "input")
    _check(with_rank_at_least(c.inputs[1], 1), c.inputs[2], c.inputs[0])
    return (c.inputs[0],)
