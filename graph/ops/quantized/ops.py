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
    "QuantizeDownAndShrinkRange": {},
    "QuantizeV2": {},
    "QuantizedAdd": {},
    "QuantizedAvgPool": {"takes_long": True},
    "QuantizedBiasAdd": {},
    "QuantizedConcat": {},
    "QuantizedConv2D": {"takes_long": True},
    "QuantizedMatMul": {"takes_long": True},
    "QuantizedMaxPool": {"takes_long": True},
    "QuantizedMul": {},
    "QuantizedRelu": {},
    "QuantizedRelu6": {},
    "QuantizedReshape": {},
    "RequantizationRange": {},
    "RequantizationRangePerChannel": {},
    "Requantize": {},
    "RequantizePerChannel": {},
    "UniformDequantize": {},
    "UniformQuantize": {},
    "UniformRequantize": {},
}
