"""Shape functions of recurrent cells: all outputs of an op have one shape, [batch, cells] or [time, batch, cells]."""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.shape_functions import ShapeContext, shape_fn, with_rank
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
