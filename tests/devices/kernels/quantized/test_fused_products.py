"""Fused products of bytes: the numbers of TensorFlow's CPU kernels, which use oneDNN."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partita.errors import InvalidArgumentError, UnimplementedError
from partita.graph.dtypes import Array, DataType
from tests.devices.kernels.harness import check_shapes, run

BYTES: dict[str, Any] = {"T1": DataType.QUINT8, "T2": DataType.QINT8}
A = np.array([[217, 163, 130], [69, 78, 10]], np.uint8)
B = np.array([[-109, -124], [-84, 80], [38, 105]], np.int8)
BIAS = np.array([0.5, -1], np.float32)
ENDS = (-530488.5, 530488.5)


def product(op: str, *frozen: float, bias: Array = BIAS, low: float = 0, high_b: float = 2, **attrs: Any) -> Any:
    """The product of A over [low, 4] and B over [-2, high_b], as Python values."""
    ends = map(np.float32, (low, 4, -2, high_b, *frozen))
    types = BYTES if op.endswith("Relu") else {**BYTES, "Tbias": DataType.FLOAT if bias is BIAS else DataType.QINT32}
    result = check_shapes(f"QuantizedMatMulWithBias{op}", A, B, bias, *ends, **types, **attrs)
    return [np.asarray(part).tolist() for part in (result if isinstance(result, tuple) else (result,))]


def test_products_of_matrices() -> None:
    """A float bias is rounded to units, an integer one is in units; what follows is done to the sum."""
    assert product("") == [[[-30381, -4266], [-11669, -5314]], *ENDS]
    assert product("", bias=np.array([100, -50], np.int32)) == [[[-32305, -268], [-13593, -1316]], *ENDS]
    assert product("AndRelu", bias=BIAS) == [[[0, 0], [0, 0]], *ENDS]
    assert product("", high_b=1.5)[1:] == [-464177.4375, 464177.4375]
    positive = np.array([9, 1], np.float32)
    ((first, second),) = product("AndDequantize", -6, 12, Toutput=DataType.FLOAT)
    np.testing.assert_allclose([first, second], [[-7.504941, -1.0538521], [-2.8825538, -1.3127375]], rtol=1e-6)
    got = run(
        "QuantizedMatMulWithBiasAndReluAndRequantize", A, B, positive, *map(np.float32, (0, 4, -2, 2, -3, 9)),
        **BYTES, Tbias=DataType.FLOAT,
    )  # fmt: skip
    assert got[0].tolist() == [[28, 27], [159, 19]]


def test_another_minimum_than_zero() -> None:
    """TensorFlow's kernels make up for it by too much; SCALED, which only floats heed, has no minimum."""
    too_much = [[25569554, -10078429], [25588268, -10079477]]
    np.testing.assert_allclose(product("", low=-1)[0], too_much, rtol=1e-6)
    np.testing.assert_allclose(product("", low=0.5)[0], [[-26152890, 10275741], [-26134178, 10274693]], rtol=1e-6)
    np.testing.assert_allclose(
        product("AndDequantize", -6, 12, low=-1, Toutput=DataType.FLOAT)[0],
        [[7895.4937, -3112.0674], [7901.272, -3112.3909]], rtol=1e-6,
    )  # fmt: skip
    scaled = product("AndDequantize", -6, 12, low=-1, Toutput=DataType.FLOAT, input_quant_mode="SCALED")
    np.testing.assert_allclose(scaled[0][0], [-7.504941, -1.0538521], rtol=1e-6)


IMAGE = np.array([[108, 159, 116, 198], [109, 10, 183, 135]], np.uint8).reshape(1, 2, 2, 2)
FILTER = np.array(
    [-115, -91, 11, 81, -111, 46, 66, 73, 95, -79, 14, 77, -37, -80, -6, -108, -72, 90, 42, 92, 87, 96, -49, -8],
    np.int8,
).reshape(2, 2, 2, 3)
CONV_BIAS = np.array([-0.9416984, 0.16230685, 0.818374], np.float32)
CONV: dict[str, Any] = {
    "strides": [1, 1, 1, 1],
    "padding": "VALID",
    "Tinput": DataType.QUINT8,
    "Tfilter": DataType.QINT8,
}


def conv(op: str, *others: Any, ends: tuple[Any, Any] = (-2.0, 2.0), w: Array = FILTER, **attrs: Any) -> Any:
    """One window of an image over [0, 4], with a bias first if the op takes one, then the ends of a frozen range."""
    bias, frozen = (others[:1], others[1:]) if "Bias" in op else ((), others)
    numbers = [np.asarray(number, np.float32) for number in (0, 4, *ends, *frozen)]
    result = check_shapes(op, IMAGE, w, *bias, *numbers, **CONV, **attrs)
    return [np.asarray(part).reshape(-1).tolist() for part in result]


def test_convolutions() -> None:
    """With a bias, a ReLU, and back to bytes."""
    limits = [[ENDS[0]], [ENDS[1]]]
    assert conv("QuantizedConv2D") == [[8006, -15456, 49855], *limits]
    assert conv("QuantizedConv2DAndRelu") == [[8006, 0, 49855], *limits]
    assert conv("QuantizedConv2DWithBias", CONV_BIAS) == [[4194, -14799, 53168], *limits]
    assert conv("QuantizedConv2DWithBiasAndRelu", CONV_BIAS) == [[4194, 0, 53168], *limits]
    assert conv("QuantizedConv2DAndReluAndRequantize", 0, 9) == [[56, 0, 255], [0], [9]]
    assert conv("QuantizedConv2DAndRequantize", -3, 9, out_type=DataType.QINT8) == [[28, -54, 127], [-3], [9]]
    requantized = "QuantizedConv2DWithBiasAndRequantize"
    bias_type: dict[str, Any] = {"Tbias": DataType.FLOAT}
    assert conv(requantized, CONV_BIAS, -3, 9, out_type=DataType.QINT8, **bias_type)[0] == [15, -52, 127]
    whole = np.array([1000, -1000, 500], np.int32)
    fused = "QuantizedConv2DWithBiasAndReluAndRequantize"
    assert conv(fused, whole, 0, 9, Tbias=DataType.QINT32)[0] == [63, 0, 255]


def test_a_range_for_each_channel_of_the_filter() -> None:
    """Sums are brought to the unit of the channel with the largest one; bytes of a frozen range have its unit."""
    ends = [-2.0, -1.0, -0.5], [2.0, 0.5, 3.0]
    result, low, high = conv("QuantizedConv2DPerChannel", ends=ends)
    assert result == [5337, -5152, 49855]
    np.testing.assert_allclose(high, [530488.5, 198933.19, 464177.44])
    assert low == [-end for end in high]
    fused = "QuantizedConv2DWithBiasAndReluAndRequantize"
    assert conv(fused, CONV_BIAS, 0, 9, ends=ends, Tbias=DataType.FLOAT)[0] == [29, 0, 255]


def test_depthwise_convolutions() -> None:
    """A filter for each channel of the image."""
    one = np.ones(2, np.float32)
    w = FILTER[..., :1]
    assert conv("QuantizedDepthwiseConv2D", w=w)[0] == [-1111, 9117]
    assert conv("QuantizedDepthwiseConv2DWithBias", one, w=w)[0] == [2937, 13165]
    assert conv("QuantizedDepthwiseConv2DWithBiasAndRelu", -one, w=w)[0] == [0, 5069]
    fused = "QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize"
    assert conv(fused, one, 0, 9, w=w, Tbias=DataType.FLOAT)[0] == [21, 92]


def test_what_is_refused() -> None:
    """Transposed matrices, padding by a list, operands that do not fit."""
    with pytest.raises(UnimplementedError, match="takes no transposed matrices"):
        product("", transpose_a=True)
    with pytest.raises(UnimplementedError, match="pads as `padding` says"):
        conv("QuantizedConv2DAndRelu", padding_list=[1, 1])
    with pytest.raises(InvalidArgumentError, match=r"the bias must have shape \[2\]: \[1\]"):
        run("QuantizedMatMulWithBias", A, B, BIAS[:1], *map(np.float32, (0, 4, -2, 2)), **BYTES, Tbias=DataType.FLOAT)
    with pytest.raises(InvalidArgumentError, match="same depth: 2 vs 1"):
        run("QuantizedConv2DAndRelu", IMAGE, FILTER[:, :, :1], *map(np.float32, (0, 4, -2, 2)), **CONV)
