"""Operations of recurrent cells: the products of [input, output] with the joined weights, once forth, twice back."""

from __future__ import annotations

from ..op_cost import CostContext, flops


def _rows(c: CostContext, port: int) -> int:
    """How many vectors input `port` consists of."""
    return c.elements_in(port) // max(c.inputs[port][-1], 1)


@flops("LSTMBlockCell", matrix="product")
def lstm_block_cell(c: CostContext) -> int:
    return 2 * _rows(c, 0) * c.elements_in(3)


@flops("BlockLSTM", "BlockLSTMV2", matrix="product")
def block_lstm(c: CostContext) -> int:
    """At every step."""
    return 2 * _rows(c, 1) * c.elements_in(4)


@flops("BlockLSTMGrad", "BlockLSTMGradV2", matrix="product")
def block_lstm_grad(c: CostContext) -> int:
    """At every step a product for the inputs and one for the weights."""
    return 4 * _rows(c, 1) * c.elements_in(4)


@flops("LSTMBlockCellGrad")
def lstm_block_cell_grad(c: CostContext) -> int:
    """No product: about 25 operations for each cell."""
    return 25 * c.elements_in(1)


@flops("GRUBlockCell", "GRUBlockCellGrad", matrix="product")
def gru_block_cell(c: CostContext) -> int:
    """One product with the weights of the gates, one with those of the candidate."""
    return 2 * _rows(c, 0) * (c.elements_in(2) + c.elements_in(3))
