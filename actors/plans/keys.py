"""The rendezvous keys of the transfers that partitions make: stems, to which a run adds its frame.

    send of "neg:0" on CPU:0 to CPU:1      stem "CPU:0;1;CPU:1;edge_3_neg;"      (with the full names of devices)
    in the graph itself                    "CPU:0;1;CPU:1;edge_3_neg;0:0"
    in iteration 2 of a loop               "CPU:0;1;CPU:1;edge_3_neg;" and the number of the loop, then ":2"

Stems are made from the rows of a partitioning, or from the attrs of `_Send` and `_Recv` nodes that came with a graph;
`rendezvous.key` spells them. The two ends of a transfer get the same one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...graph.analysis.transfers import TransferTable, transfer_of
from ...rendezvous.key import stem, stems

if TYPE_CHECKING:
    from ...graph.analysis.transfers import TransferredTensor
    from ...graph.arrays import Numbers
    from ...graph.graph import Graph


def stem_of(transfer: TransferredTensor) -> str:
    """The stem of a transfer that is given as a node has it."""
    return stem(*transfer.route, transfer.tensor_name)


def numbered_stems(ends: Sequence[tuple[Graph, Numbers]]) -> tuple[Numbers, list[str]]:
    """By send or receive, given as ids in graphs: the number of its transfer. By number: the stem.

    Ends that meet at the rendezvous have the same number. Numbers are in the order of a partitioning's rows, or without
    one in the order of appearance.
    """
    tables = {id(table): table for graph, _ in ends for table in [graph.details()[0]]}
    table = next(iter(tables.values()), None)
    rows = np.concatenate([np.zeros(0, np.int64), *(graph.details()[1][nodes] for graph, nodes in ends)])
    if len(tables) == 1 and isinstance(table, TransferTable) and (rows >= 0).all():
        in_use, numbers = np.unique(rows, return_inverse=True)
        tensors = [(table.route[row], table.tensor_name(row)) for row in in_use.tolist()]
        return numbers.reshape(-1), stems(table.routes, tensors)
    known: dict[str, int] = {}
    texts = [stem_of(transfer_of(graph.node_properties(node))) for graph, nodes in ends for node in nodes.tolist()]
    return np.array([known.setdefault(text, len(known)) for text in texts], np.int64), list(known)
