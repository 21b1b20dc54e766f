"""Shape functions of grouped products; each names the input whose size does not fit."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from ....errors import InvalidArgumentError
from ...analysis.shape_functions import ShapeContext, shape_fn, with_rank
from ...dtypes import Shape


@shape_fn("Partita>GroupedMatMul", "Partita>Float8GroupedMatMul")
def grouped_matmul(c: ShapeContext) -> Sequence[Shape]:
    """[rows, k], [groups, k, n], [groups] -> [rows, n]."""
    _check_imbalance(c)
    rows, inner = with_rank(c.inputs[0], 2)
    groups, k, n = with_rank(c.inputs[1], 3)
    k, n = (n, k) if c.attrs["transpose_b"] else (k, n)
    _same("k", inner, "x", k, "weights")
    _same("groups", groups, "weights", with_rank(c.inputs[2], 1)[0], "rows_per_group")
    return ((rows, n),)


@shape_fn("Partita>GroupedMatMulGrad", "Partita>Float8GroupedMatMulGrad")
def grouped_matmul_grad(c: ShapeContext) -> Sequence[Shape]:
    """[rows, k], [rows, n], [groups] -> [groups, k, n]."""
    _check_imbalance(c)
    (rows, k), (others, n) = with_rank(c.inputs[0], 2), with_rank(c.inputs[1], 2)
    _same("rows", rows, "x", others, "d_product")
    (groups,) = with_rank(c.inputs[2], 1)
    return ((groups, n, k) if c.attrs["transpose_b"] else (groups, k, n),)


def _check_imbalance(c: ShapeContext) -> None:
    imbalance = c.attrs["assumed_imbalance"]
    if not 1 <= imbalance < inf:
        raise InvalidArgumentError(
            f"attr assumed_imbalance = {imbalance} must be from 1.0 on: how many times the mean the busiest device has"
        )


def _same(what: str, one: int | None, of_one: str, other: int | None, of_other: str) -> None:
    """InvalidArgumentError for two sizes that are known and differ."""
    if one is not None and other is not None and one != other:
        raise InvalidArgumentError(f"{what} is {one} by {of_one} and {other} by {of_other}; they must be equal")
