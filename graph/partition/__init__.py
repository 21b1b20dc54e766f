"""Cutting a graph into one part per device, joined by Send and Recv nodes."""

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
