"""Costs of grouped products: those of their groups, all alike.

    8 groups, 4096 rows of 1024 by 1024 x 512      8 products of 512 x 1024 x 512
    8 groups, 3 rows                               3 products of 1 x 1024 x 512: no other weights are read

No number of rows exists on the clock. There are `assumed_imbalance` times as many rows as the shape says: where several
devices have experts, the busiest one has more than the mean.
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from ....graph.dtypes import DataType, item_size
from ..op_cost import CostContext, bytes_moved, computes_in, factor_bytes, flops, layers
from ..op_forms import Layer

LEAST_ROWS = 128
"""rows of a group: with fewer a product reads its weights as fast as the memory is, and no fit describes it"""


class _Groups(NamedTuple):
    """Groups that have rows, and how many; all rows; and the sizes of each group's matrix."""

    busy: int
    all: int
    rows: int
    k: int
    n: int

    @property
    def rows_each(self) -> int:
        """Rows of a group."""
        return ceil(self.rows / max(1, self.busy))


def _groups(c: CostContext) -> _Groups:
    (rows, k), (groups,) = c.inputs[0], c.inputs[2]
    n = c.outputs[0][1] if len(c.outputs[0]) == 2 else c.inputs[1][1]
    return _Groups(min(groups, rows), groups, ceil(rows * c.attrs.get("assumed_imbalance", 1.0)), k, n)


_FORWARD = "Partita>GroupedMatMul", "Partita>Float8GroupedMatMul"
_GRADIENTS = "Partita>GroupedMatMulGrad", "Partita>Float8GroupedMatMulGrad"

computes_in(DataType.FLOAT8_E4M3FN, "Partita>Float8GroupedMatMul", "Partita>Float8GroupedMatMulGrad")


@flops(*_FORWARD, *_GRADIENTS, matrix="grouped product")
def grouped(c: CostContext) -> int:
    """2*k*n for every row, whichever group it is in."""
    groups = _groups(c)
    return 2 * groups.rows * groups.k * groups.n


@bytes_moved(*_FORWARD)
def grouped_bytes(c: CostContext) -> int:
    """Rows in and out, and the weights of the groups that have rows."""
    groups = _groups(c)
    factors = groups.rows * groups.k + groups.busy * groups.k * groups.n
    return factors * factor_bytes(c) + groups.rows * groups.n * item_size(c.output_types[0]) + c.bytes_in(2)


@bytes_moved(*_GRADIENTS)
def grouped_gradient_bytes(c: CostContext) -> int:
    """Both kinds of rows, and the gradients of all groups: zeros are written too."""
    groups = _groups(c)
    factors = groups.rows * (groups.k + groups.n)
    return factors * factor_bytes(c) + groups.all * groups.k * groups.n * item_size(c.output_types[0]) + c.bytes_in(2)


@layers(*_FORWARD)
def grouped_layer(c: CostContext) -> Layer | None:
    """Forward, or what is as much, the gradient of the rows: its weights are turned."""
    return _layer(c, "bwd_grad_act" if c.attrs.get("transpose_b") else "fwd")


@layers(*_GRADIENTS)
def grouped_gradient_layer(c: CostContext) -> Layer | None:
    """The gradient of the weights."""
    return _layer(c, "bwd_grad_w")


def _layer(c: CostContext, stage: str) -> Layer | None:
    groups = _groups(c)
    if groups.rows_each < LEAST_ROWS:
        return None
    # The gradients that were measured are added to a buffer, read and written; these are written once.
    gradient_bytes = max(1, item_size(c.output_types[0]) // 2)
    sizes = {"groups": groups.busy, "m": groups.rows_each, "n": groups.n, "k": groups.k}
    return Layer("grouped", stage, {**sizes, "gradient_bytes": gradient_bytes})
