"""Cutting a graph into one part per device, joined by Send and Recv nodes."""

from ..analysis.transfers import ROOT_FRAME, TRANSFER_OPS, Transfer, TransferProperties, transfer_numbers, transfer_of
from .options import PartitionOptions, name_counter
from .recv_epochs import add_control_edges
from .split import partition, split_graph

__all__ = [
    "ROOT_FRAME",
    "TRANSFER_OPS",
    "PartitionOptions",
    "Transfer",
    "TransferProperties",
    "add_control_edges",
    "name_counter",
    "partition",
    "split_graph",
    "transfer_numbers",
    "transfer_of",
]
