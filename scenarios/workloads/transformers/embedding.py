"""Embeddings of tokens by a vocabulary split over the ranks of tp, and of learned positions.

    vocabulary 10 over tp=2, padded to 12       rank 0 has rows 0 to 5, rank 1 has 6 to 11; 10 and 11 mean no token

A rank looks up the tokens that it has, others are rows of zeros, and the ranks' rows are added up. A table that is tied
computes the logits too, on the last stage.
"""

from __future__ import annotations

from math import sqrt

from ....graph.builder.handles import Tensor
from ....graph.dtypes import DataType
from .network import RankNetwork
from .products import left
from .sequence import positions


def class_table(network: RankNetwork, name: str, classes: int, padded: int, hidden: int) -> Tensor:
    """Weights [padded, hidden] split by classes; rows that only pad start at 0."""
    return network.parameters.weight(name, (padded, hidden), split=0, scale=sqrt(3 / hidden), filled=classes)


def tied_table(network: RankNetwork, table: Tensor) -> Tensor:
    """The table of the embedding for the logits of the last stage."""
    if network.split.pp == 1:
        return table
    with network.program.on_stage(0, network.sizes.devices[0]):
        return network.parameters.again(table, "tied_table")


def looked_up(network: RankNetwork, table: Tensor, ids: Tensor, padded: int) -> Tensor:
    """The rows of ids [rows] in a table that has `padded` of them on all ranks: [own rows, width]."""
    b = network.b
    if network.tp == 1:
        return b.op("GatherV2", table, ids, 0, name="looked_up")[0]
    share = padded // network.tp
    local = b.op("Sub", ids, network.offset("tp", share), name="local")[0]
    is_here = b.op("LogicalAnd", b.op("GreaterEqual", local, 0), b.op("Less", local, share), name="is_here")[0]
    found = b.op("GatherV2", table, b.op("Mul", local, network.cast(is_here, DataType.INT32)), 0, name="found")
    there = network.reshaped(network.cast(is_here, table.dtype), [network.rows, 1])
    return left(network, b.op("Mul", found, there, name="looked_up")[0])


def with_positions(network: RankNetwork, x: Tensor, count: int, hidden: int) -> Tensor:
    """x [own rows, hidden] plus the embeddings of its positions, of which a table learns `count`."""
    table = network.matrix("positions/table", (count, hidden), hidden)
    at = network.b.op("GatherV2", table, positions(network, own=True), 0, name="positions/rows")[0]
    batch = network.sizes.batch
    if batch == 1:
        return x + at
    count = network.own_rows // batch
    by_position = network.reshaped(x, [count, batch, hidden]) + network.reshaped(at, [count, 1, hidden])
    return network.reshaped(by_position, [network.own_rows, hidden], "with_positions")
