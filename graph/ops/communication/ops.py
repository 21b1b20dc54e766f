"""The ops of communication between devices.

`graph/ops/record.py` explains the columns of a row.
"""

from __future__ import annotations

from ..record import Exchange, FactsByOp, NodeClass

OPS: FactsByOp = {
    "CollectiveAllToAllV2": {"waits": True, "exchange": Exchange.ALL_TO_ALL},
    "CollectiveAllToAllV3": {"waits": True, "exchange": Exchange.ALL_TO_ALL},
    "CollectiveAssignGroupV2": {"is_flat": True, "exchange": Exchange.NOTHING},
    "CollectiveBcastRecv": {"node_class": NodeClass.COLLECTIVE, "waits": True, "exchange": Exchange.BROADCAST},
    "CollectiveBcastRecvV2": {"waits": True, "exchange": Exchange.BROADCAST},
    "CollectiveBcastSend": {"node_class": NodeClass.COLLECTIVE, "waits": True, "exchange": Exchange.BROADCAST},
    "CollectiveBcastSendV2": {"waits": True, "exchange": Exchange.BROADCAST},
    "CollectiveGather": {"waits": True, "exchange": Exchange.ALL_GATHER},
    "CollectiveGatherV2": {"waits": True, "exchange": Exchange.ALL_GATHER},
    "CollectiveInitializeCommunicator": {"is_flat": True, "exchange": Exchange.NOTHING},
    "CollectiveReduce": {"node_class": NodeClass.COLLECTIVE, "waits": True, "exchange": Exchange.ALL_REDUCE},
    "CollectiveReduceScatterV2": {"waits": True, "exchange": Exchange.REDUCE_SCATTER},
    "CollectiveReduceV2": {"waits": True, "exchange": Exchange.ALL_REDUCE},
    "CollectiveReduceV3": {"waits": True, "exchange": Exchange.ALL_REDUCE},
    "DTensorAllGather": {"is_collective": True},
    "DTensorAllScatter": {"is_collective": True},
    "DTensorAllToAll": {"is_collective": True},
    "NcclAllReduce": {"waits": True, "exchange": Exchange.ALL_REDUCE},
    "NcclBroadcast": {"is_collective": True, "exchange": Exchange.NOTHING},
    "NcclReduce": {"exchange": Exchange.NOTHING},
    "Partita>AllGather": {"waits": True, "exchange": Exchange.ALL_GATHER},
    "Partita>AllToAllV": {"waits": True, "exchange": Exchange.ALL_TO_ALL},
    "Partita>CollectivePermute": {"waits": True, "exchange": Exchange.PERMUTE},
    "Partita>CopiedOver": {"is_view": True, "linear_inputs": 1, "keeps_first_axis": True},
}
