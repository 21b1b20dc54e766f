"""Shape functions of matrix products; contracted sizes must agree where both are known."""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.shape_functions import (
    ShapeContext,
    broadcast,
    merge,
    merge_dims,
    shape_fn,
    with_rank,
    with_rank_at_least,
)
from ...dtypes import Shape


@shape_fn("MatMul", "SparseMatMul")
def matmul(c: ShapeContext) -> Sequence[Shape]:
    """[m, k] x [k, n] -> [m, n]."""
    a, b = with_rank(c.inputs[0], 2), with_rank(c.inputs[1], 2)
    rows, inner_a = a[::-1] if c.attrs["transpose_a"] else a
    inner_b, columns = b[::-1] if c.attrs["transpose_b"] else b
    merge_dims(inner_a, inner_b)
    return ((rows, columns),)


def _stacked(c: ShapeContext, x: Shape, y: Shape, join: bool) -> Sequence[Shape]:
    x, y = with_rank_at_least(x, 2), with_rank_at_least(y, 2)
    if x is None or y is None:
        return (None,)
    rows, inner_x = x[:-3:-1] if c.attrs["adj_x"] else x[-2:]
    inner_y, columns = y[:-3:-1] if c.attrs["adj_y"] else y[-2:]
    merge_dims(inner_x, inner_y)
    stack = broadcast(x[:-2], y[:-2]) if join else merge(x[:-2], y[:-2])
    return (None if stack is None else (*stack, rows, columns),)


@shape_fn("BatchMatMul")
def batch_matmul(c: ShapeContext) -> Sequence[Shape]:
    """[..., m, k] x [..., k, n] -> [..., m, n] with equal stacks."""
    x, y = c.inputs[0], c.inputs[1]
    if x is None:  # one known rank gives the other
        x = None if y is None else (None,) * len(y)
    if y is None:
        y = None if x is None else (None,) * len(x)
    return _stacked(c, x, y, join=False)


@shape_fn("BatchMatMulV2", "BatchMatMulV3")
def batch_matmul_v2(c: ShapeContext) -> Sequence[Shape]:
    """[..., m, k] x [..., k, n] -> [..., m, n] with stacks that broadcast."""
    return _stacked(c, c.inputs[0], c.inputs[1], join=True)
