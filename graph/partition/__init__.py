"""Cutting a graph into one part per device, joined by Send and Recv nodes.

Names are imported when they are first used: few sessions schedule their receives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import load_lazily

if TYPE_CHECKING:
    from ..analysis.transfers import (
        TransferProperties as TransferProperties,
        TransferredTensor as TransferredTensor,
        TransferTable as TransferTable,
        transfer_of as transfer_of,
    )
    from .options import PartitionOptions as PartitionOptions, name_counter as name_counter
    from .recv_epochs import add_control_edges as add_control_edges
    from .split import partition as partition, split_graph as split_graph

load_lazily(__name__)
