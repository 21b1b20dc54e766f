"""Shape functions of recurrent cells and their gradients.

All outputs of a cell have one shape, [batch, cells] or [time, batch, cells].
"""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.shape_functions import ShapeContext, multiplied, shape_fn, with_rank
from ...dtypes import Shape


@shape_fn("LSTMBlockCell")
def lstm_block_cell(c: ShapeContext) -> Sequence[Shape]:
    """[batch, cells] seven times; the batch is the input's."""
    x, state = with_rank(c.inputs[0], 2), with_rank(c.inputs[1], 2)
    return ((x[0], state[1]),) * 7


@shape_fn("BlockLSTM", "BlockLSTMV2")
def block_lstm(c: ShapeContext) -> Sequence[Shape]:
    """[time, batch, cells] seven times; the bias of the four gates gives the number of cells."""
    x, (gates,) = with_rank(c.inputs[1], 3), with_rank(c.inputs[8], 1)
    return ((x[0], x[1], None if gates is None else gates // 4),) * 7


@shape_fn("GRUBlockCell")
def gru_block_cell(c: ShapeContext) -> Sequence[Shape]:
    """[batch, cells] four times; the batch is the input's."""
    x, state = with_rank(c.inputs[0], 2), with_rank(c.inputs[1], 2)
    return ((x[0], state[1]),) * 4


@shape_fn("LSTMBlockCellGrad")
def lstm_block_cell_grad(c: ShapeContext) -> Sequence[Shape]:
    """[batch, cells], [batch, 4 cells], three times [cells]."""
    x, state = with_rank(c.inputs[0], 2), with_rank(c.inputs[1], 2)
    return ((x[0], state[1]), (x[0], multiplied(state[1], 4)), *((state[1],),) * 3)


@shape_fn("BlockLSTMGrad", "BlockLSTMGradV2")
def block_lstm_grad(c: ShapeContext) -> Sequence[Shape]:
    """The shapes of what was differentiated: input, cell, output, weights, peepholes and bias."""
    ranks = (3, 2, 2, 2, 1, 1, 1, 1)
    return [with_rank(shape, rank) for shape, rank in zip(c.inputs[1:9], ranks, strict=True)]


@shape_fn("GRUBlockCellGrad")
def gru_block_cell_grad(c: ShapeContext) -> Sequence[Shape]:
    """The shapes of input and previous output, of that again, and of the two gates."""
    x, h, weights = with_rank(c.inputs[0], 2), with_rank(c.inputs[1], 2), with_rank(c.inputs[2], 2)
    return (x, (x[0], h[1]), (x[0], h[1]), (x[0], weights[1]))
