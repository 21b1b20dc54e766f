"""Cutting a graph into one part per device, joined by Send and Recv nodes.

Names are imported when they are first used: few sessions schedule their receives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import load_lazily

if TYPE_CHECKING:
    from ..analysis.transfers import Transfer, TransferProperties, TransferTable, transfer_of
    from .options import PartitionOptions, name_counter
    from .recv_epochs import add_control_edges
    from .split import partition, split_graph

__all__ = [
    "PartitionOptions",
    "Transfer",
    "TransferProperties",
    "TransferTable",
    "add_control_edges",
    "name_counter",
    "partition",
    "split_graph",
    "transfer_of",
]

load_lazily(
    __name__,
    {
        ".analysis.transfers": ["Transfer", "TransferProperties", "TransferTable", "transfer_of"],
        "options": ["PartitionOptions", "name_counter"],
        "recv_epochs": ["add_control_edges"],
        "split": ["partition", "split_graph"],
    },
)
