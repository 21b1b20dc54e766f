"""The ops that name one operation of XLA each, as Keras and `tf.function` put them into graphs.

`graph/ops/record.py` explains the columns of a row.
"""

from __future__ import annotations

from ..record import FactsByOp

OPS: FactsByOp = {
    "XlaBroadcastHelper": {},
    "XlaConcatND": {},
    "XlaConv": {"takes_long": True, "is_product": True},
    "XlaConvV2": {"takes_long": True, "is_product": True},
    "XlaCustomCall": {},
    "XlaCustomCallV2": {},
    "XlaDot": {"takes_long": True, "is_product": True},
    "XlaDotV2": {"takes_long": True, "is_product": True},
    "XlaDynamicSlice": {},
    "XlaDynamicUpdateSlice": {},
    "XlaGather": {},
    "XlaIf": {"waits": True},
    "XlaKeyValueSort": {},
    "XlaLaunch": {"waits": True},
    "XlaOptimizationBarrier": {"regroups": True},
    "XlaPad": {},
    "XlaReduce": {"waits": True},
    "XlaReducePrecision": {},
    "XlaReduceWindow": {"waits": True, "takes_long": True},
    "XlaReplicaId": {},
    "XlaRngBitGenerator": {},
    "XlaScatter": {"waits": True},
    "XlaSelectAndScatter": {"waits": True},
    "XlaSelfAdjointEig": {"takes_long": True},
    "XlaSetBound": {},
    "XlaSetDynamicDimensionSize": {},
    "XlaSharding": {"passes_on": True, "is_view": True},
    "XlaSort": {},
    "XlaSplitND": {},
    "XlaSpmdFullToShardShape": {},
    "XlaSpmdShardToFullShape": {},
    "XlaSvd": {"takes_long": True},
    "XlaVariadicReduce": {"waits": True, "is_flat": True},
    "XlaVariadicReduceV2": {"waits": True},
    "XlaVariadicSort": {"waits": True, "takes_long": True},
    "XlaWhile": {"waits": True},
}
