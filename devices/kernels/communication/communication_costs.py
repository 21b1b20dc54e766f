"""Costs of collectives beside their communication, which belongs to the links."""

from __future__ import annotations

from math import prod

from ..host_times import MAKE_NS
from ..op_cost import CostContext, flops, free, moves, takes_host_time

takes_host_time(MAKE_NS, "CollectiveInitializeCommunicator")
free("CollectiveAssignGroupV2", "NcclBroadcast")
moves(
    *("CollectiveAllToAllV2", "CollectiveAllToAllV3", "CollectiveBcastRecv", "CollectiveBcastRecvV2"),
    *("CollectiveBcastSend", "CollectiveBcastSendV2", "CollectiveGather", "CollectiveGatherV2"),
    *("Partita>AllGather", "Partita>AllToAllV", "Partita>CollectivePermute"),
)


@flops(
    *("CollectiveReduce", "CollectiveReduceScatterV2", "CollectiveReduceV2", "CollectiveReduceV3", "NcclAllReduce"),
    "NcclReduce",
)
def merged_values(c: CostContext) -> int:
    """One operation for each element that another member, or another input, brings."""
    return max(sum(map(prod, c.inputs)) - max(map(prod, c.outputs), default=0), max(map(prod, c.inputs), default=0))
