"""Cutting a graph into one part per device, joined by Send and Recv nodes."""

from .options import PartitionOptions, name_counter
from .split import partition, split_graph
from .transfer import TRANSFER_OPS, Transfer, transfer_numbers, transfer_of

__all__ = [
    "TRANSFER_OPS",
    "PartitionOptions",
    "Transfer",
    "name_counter",
    "partition",
    "split_graph",
    "transfer_numbers",
    "transfer_of",
]
