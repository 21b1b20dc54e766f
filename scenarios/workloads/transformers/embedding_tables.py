"""Embedding tables that ranks of dp share out whole, and the rows that samples look up in them.

    tables of 100, 7, 60, 50 rows over dp=2      rank 0 has tables 0 and 1, rank 1 has 2 and 3
    one variable a rank, padded to 110 rows      rank 0: 0 at row 0, 1 at row 100; rank 1: 2 at row 0, 3 at row 60

    numbers [batch, tables] --all-to-all--> [ranks, batch, tables of the rank] --look up--> [.., width]
                            --all-to-all--> [tables, batch, width]

The largest table goes first, always to the rank with the fewest rows that has room: ranks have equally many slots, of
which some may have no table. Samples are elsewhere than tables: what they look up goes to the ranks of the tables, and
rows come back (Naumov et al. 2019, arXiv 1906.00091, section 4). So a table gets the gradients of all samples. They are
dense: an update goes over all rows of a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np

from ....graph.builder.handles import Tensor
from ....graph.dtypes import Array, DataType
from .network import RankNetwork

_DP = "dp"


class TableLayout(NamedTuple):
    """Which tables each rank has."""

    tables: tuple[tuple[int | None, ...], ...]
    """by rank, with as many slots on each; None for a slot without a table"""
    rows: int
    """of the rank with the most"""

    @property
    def slots(self) -> int:
        """The tables of a rank."""
        return len(self.tables[0])

    @property
    def places(self) -> Array:
        """Where each table is: rank * slots + slot, int64 [tables]."""
        flat = [table for of_rank in self.tables for table in of_rank]
        count = sum(table is not None for table in flat)
        return np.array([flat.index(table) for table in range(count)], np.int64)

    def first_rows(self, rows: Sequence[int]) -> Array:
        """The row of the rank's variable at which each table begins, int64 [ranks, slots]; 0 for none."""
        firsts = np.zeros((len(self.tables), self.slots), np.int64)
        for rank, of_rank in enumerate(self.tables):
            sizes = [0 if table is None else rows[table] for table in of_rank]
            firsts[rank] = np.cumsum([0, *sizes[:-1]]) * [table is not None for table in of_rank]
        return firsts


def shared_out(rows: Sequence[int], ranks: int) -> TableLayout:
    """The layout of tables of so many rows over ranks."""
    slots = -(-len(rows) // ranks)
    tables: list[list[int]] = [[] for _ in range(ranks)]
    filled = [0] * ranks
    for table in sorted(range(len(rows)), key=lambda table: (-rows[table], table)):
        rank = min((rank for rank in range(ranks) if len(tables[rank]) < slots), key=lambda rank: (filled[rank], rank))
        tables[rank].append(table)
        filled[rank] += rows[table]
    padded = [(*sorted(of_rank), *[None] * (slots - len(of_rank))) for of_rank in tables]
    return TableLayout(tuple(padded), max(filled))


def looked_up_rows(network: RankNetwork, rows: Sequence[int], width: int, numbers: Tensor) -> Tensor:
    """Rows `numbers` [batch, tables] of tables that have `rows` rows: [tables, batch, width]."""
    b, ranks = network.b, network.program.mesh.dp
    layout = shared_out(rows, ranks)
    by_table = b.op("Transpose", network.cast(numbers, DataType.INT64), [1, 0], name="by_table")[0]
    table = _variable(network, rows, width, layout)
    if ranks == 1:
        at = b.op("AddV2", by_table, layout.first_rows(rows).reshape(-1, 1), name="at")
        found = b.op("GatherV2", table, at, 0, name="rows")[0]
        return network.cast(found, network.parameters.compute_type)
    asked = network.program.all_to_all(_by_rank(network, by_table, layout), _DP, name="asked")
    at = b.op("AddV2", asked, _first_rows(network, rows, layout), name="at")
    found = network.cast(b.op("GatherV2", table, at, 0, name="rows")[0], network.parameters.compute_type)
    answered = network.program.all_to_all(found, _DP, name="answered")
    flat = network.reshaped(answered, [ranks * layout.slots, network.sizes.batch, width])
    return b.op("GatherV2", flat, layout.places, 0, name="rows_by_table")[0]


def _by_rank(network: RankNetwork, by_table: Tensor, layout: TableLayout) -> Tensor:
    """Numbers [tables, batch] as [ranks, slots, batch]; where a slot has no table they are 0."""
    b = network.b
    count = len(layout.places)
    order = [count if table is None else table for of_rank in layout.tables for table in of_rank]
    if count in order:
        none = np.zeros((1, network.sizes.batch), np.int64)
        by_table = b.op("ConcatV2", [by_table, none], 0, name="with_none")[0]
    sorted_ = b.op("GatherV2", by_table, np.array(order, np.int64), 0, name="by_rank")[0]
    return network.reshaped(sorted_, [len(layout.tables), layout.slots, -1])


def _first_rows(network: RankNetwork, rows: Sequence[int], layout: TableLayout) -> Tensor:
    """Where the rank's tables begin in its variable: int64 [slots, 1]."""
    firsts = network.b.op("GatherV2", layout.first_rows(rows), network.program.position(_DP), 0, name="first_rows")[0]
    return network.reshaped(firsts, [-1, 1])


def _variable(network: RankNetwork, rows: Sequence[int], width: int, layout: TableLayout) -> Tensor:
    """The tables of the rank, one behind the other, in the precision of the optimizer: what is looked up is cast.

    Table t starts uniform within 1 / sqrt(rows), by a name of its own, whatever rank has it.
    """
    b, parameters = network.b, network.parameters

    def start() -> Tensor:
        parts = []
        for of_rank in layout.tables:
            tables = [table for table in of_rank if table is not None]
            shapes = [(rows[table], width) for table in tables]
            parts += [
                parameters.uniform(f"table_{table}", shape, 1 / sqrt(shape[0]))
                for table, shape in zip(tables, shapes, strict=True)
            ]
            missing = layout.rows - sum(shape[0] for shape in shapes)
            if missing:
                zero = np.array(0, parameters.numpy_type)
                parts.append(b.op("Fill", np.array([missing, width], np.int32), zero, name="padding")[0])
        return b.op("ConcatV2", parts, 0, name="whole")[0] if len(parts) > 1 else parts[0]

    shape = (len(layout.tables) * layout.rows, width)
    return parameters.weight("tables", shape, split=0, over=_DP, start=start, is_cast=False)
