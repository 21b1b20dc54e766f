"""The ops of communication between devices.

`graph/ops/record.py` explains the columns of a row.
"""

from __future__ import annotations

from ..record import FactsByOp, NodeClass

OPS: FactsByOp = {
    "CollectiveAllToAllV2": {"waits": True},
    "CollectiveAllToAllV3": {"waits": True},
    "CollectiveAssignGroupV2": {"is_flat": True},
    "CollectiveBcastRecv": {"node_class": NodeClass.COLLECTIVE, "waits": True},
    "CollectiveBcastRecvV2": {"waits": True},
    "CollectiveBcastSend": {"node_class": NodeClass.COLLECTIVE, "waits": True},
    "CollectiveBcastSendV2": {"waits": True},
    "CollectiveGather": {"waits": True},
    "CollectiveGatherV2": {"waits": True},
    "CollectiveInitializeCommunicator": {"is_flat": True},
    "CollectiveReduce": {"node_class": NodeClass.COLLECTIVE, "waits": True},
    "CollectiveReduceScatterV2": {"waits": True},
    "CollectiveReduceV2": {"waits": True},
    "CollectiveReduceV3": {"waits": True},
    "DTensorAllGather": {"is_collective": True},
    "DTensorAllScatter": {"is_collective": True},
    "DTensorAllToAll": {"is_collective": True},
    "NcclAllReduce": {"waits": True},
    "NcclBroadcast": {"is_collective": True},
    "NcclReduce": {},
    "Partita>AllToAllV": {"waits": True},
}
