"""Shape functions of the cross entropy over some of the classes."""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidArgumentError
from ...analysis.shape_functions import ShapeContext, merge, shape_fn, with_rank
from ...dtypes import Shape
from .attention_sizes import check_statistics_type


@shape_fn("Partita>SoftmaxCrossEntropy")
def cross_entropy(c: ShapeContext) -> Sequence[Shape]:
    """[rows, classes], [rows], [] -> [rows], [rows]."""
    rows, _ = _sizes(c)
    return (rows,), (rows,)


@shape_fn("Partita>SoftmaxCrossEntropyGrad")
def cross_entropy_grad(c: ShapeContext) -> Sequence[Shape]:
    """The shape of the logits; all others have a number per row."""
    rows, classes = _sizes(c)
    per_row: Shape = (rows,)
    for shape in c.inputs[3:]:
        per_row = merge(per_row, with_rank(shape, 1))
    return ((with_rank(per_row, 1)[0], classes),)


def _sizes(c: ShapeContext) -> tuple[int | None, int | None]:
    """Rows and classes."""
    check_statistics_type(c.op, c.attrs["T"], c.attrs["U"])
    (rows, classes), (labels,) = with_rank(c.inputs[0], 2), with_rank(c.inputs[1], 1)
    with_rank(c.inputs[2], 0)
    if rows is not None and labels is not None and rows != labels:
        raise InvalidArgumentError(f"logits have {rows} rows and labels {labels}; give a label for each row")
    return labels if rows is None else rows, classes
