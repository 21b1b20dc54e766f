"""The ops that transformers are made of; all are Partita's own.

`graph/ops/record.py` explains the columns of a row.
"""

from __future__ import annotations

from ..record import FactsByOp

_FLOAT8 = 'products in 8-bit floats (precision "fp8")'

OPS: FactsByOp = {
    "Partita>CachedAttention": {"takes_long": True, "is_product": True, "keeps_first_axis": True},
    "Partita>FlashAttention": {"takes_long": True, "is_product": True},
    "Partita>FlashAttentionGrad": {"takes_long": True, "is_product": True},
    "Partita>Float8GroupedMatMul": {
        "takes_long": True,
        "is_product": True,
        "keeps_first_axis": True,
        "clock_only": _FLOAT8,
    },
    "Partita>Float8GroupedMatMulGrad": {"takes_long": True, "is_product": True, "clock_only": _FLOAT8},
    "Partita>Float8MatMul": {"takes_long": True, "is_product": True, "clock_only": _FLOAT8},
    "Partita>GatedSilu": {"keeps_first_axis": True},
    "Partita>GatedSiluGrad": {"keeps_first_axis": True},
    "Partita>Gelu": {"keeps_first_axis": True},
    "Partita>GeluGrad": {"keeps_first_axis": True},
    "Partita>GroupedMatMul": {"takes_long": True, "is_product": True, "keeps_first_axis": True},
    "Partita>GroupedMatMulGrad": {"takes_long": True, "is_product": True},
    "Partita>LayerNorm": {},
    "Partita>LayerNormGrad": {},
    "Partita>RMSNorm": {},
    "Partita>RMSNormGrad": {},
    "Partita>Rotary": {"keeps_first_axis": True},
    "Partita>SoftmaxCrossEntropy": {"keeps_first_axis": True},
    "Partita>SoftmaxCrossEntropyGrad": {"keeps_first_axis": True},
}
