"""The ops of quantisation.

`graph/ops/record.py` explains the columns of a row.
"""

from __future__ import annotations

from ..record import Rows

OPS: Rows = {
    "Dequantize": {},
    "FakeQuantWithMinMaxArgs": {"in_place": True},
    "FakeQuantWithMinMaxArgsGradient": {"is_flat": True, "in_place": True},
    "FakeQuantWithMinMaxVars": {},
    "FakeQuantWithMinMaxVarsGradient": {"is_flat": True},
    "FakeQuantWithMinMaxVarsPerChannel": {},
    "FakeQuantWithMinMaxVarsPerChannelGradient": {"is_flat": True},
    "QuantizeAndDequantize": {},
    "QuantizeAndDequantizeV2": {},
    "QuantizeAndDequantizeV3": {},
    "QuantizeAndDequantizeV4": {},
    "QuantizeV2": {},
}
