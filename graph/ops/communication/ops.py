"""The ops of communication between devices.

`graph/ops/record.py` explains the columns of a row.
"""

from __future__ import annotations

from ..record import FactsByOp, NodeClass

OPS: FactsByOp = {
    "CollectiveBcastRecv": {"node_class": NodeClass.COLLECTIVE},
    "CollectiveBcastSend": {"node_class": NodeClass.COLLECTIVE},
    "CollectiveReduce": {"node_class": NodeClass.COLLECTIVE},
    "DTensorAllGather": {"is_collective": True},
    "DTensorAllScatter": {"is_collective": True},
    "DTensorAllToAll": {"is_collective": True},
    "NcclBroadcast": {"is_collective": True},
}
