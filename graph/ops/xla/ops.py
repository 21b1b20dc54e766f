"""The ops that name one operation of XLA each, as Keras and `tf.function` put them into graphs.

`graph/ops/record.py` explains the columns of a row.
"""

from __future__ import annotations

from ..record import Rows

OPS: Rows = {
    "XlaBroadcastHelper": {},
    "XlaConv": {"takes_long": True},
    "XlaConvV2": {"takes_long": True},
    "XlaDot": {"takes_long": True},
    "XlaDotV2": {"takes_long": True},
    "XlaDynamicSlice": {},
    "XlaDynamicUpdateSlice": {},
    "XlaGather": {},
    "XlaKeyValueSort": {},
    "XlaOptimizationBarrier": {"regroups": True},
    "XlaPad": {},
    "XlaReducePrecision": {},
    "XlaSelfAdjointEig": {"takes_long": True},
    "XlaSharding": {"passes_on": True, "is_view": True},
    "XlaSort": {},
    "XlaSpmdFullToShardShape": {},
    "XlaSpmdShardToFullShape": {},
    "XlaSvd": {"takes_long": True},
}
