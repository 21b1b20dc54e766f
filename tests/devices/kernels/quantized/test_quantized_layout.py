"""Quantised tensors are pooled, joined and reshaped; what they stand for stays as near as the range allows."""

from __future__ import annotations

from typing import Any

import numpy as np

from partita.graph.dtypes import DataType
from tests.devices.kernels.harness import check_shapes, run

WINDOW: dict[str, Any] = {"ksize": [1, 2, 2, 1], "strides": [1, 1, 1, 1], "padding": "VALID"}
ENDS = np.float32(-1), np.float32(2)


def test_pools() -> None:
    """Of integers: means are rounded towards zero, and the border does not count."""
    x = np.array([[1, 2], [3, 255]], np.uint8).reshape(1, 2, 2, 1)
    best, *ends = check_shapes("QuantizedMaxPool", x, *ENDS, T=DataType.QUINT8, **WINDOW)
    assert (best.item(), ends) == (255, [*ENDS])
    assert check_shapes("QuantizedAvgPool", x, *ENDS, T=DataType.QUINT8, **WINDOW)[0].item() == 65
    signed = -x.astype(np.int8)
    assert run("QuantizedAvgPool", signed, *ENDS, T=DataType.QINT8, **WINDOW)[0].item() == -1
    same = run("QuantizedAvgPool", x, *ENDS, T=DataType.QUINT8, **WINDOW | {"padding": "SAME"})[0]
    assert same.reshape(-1).tolist() == [65, 128, 129, 255]


def test_joined_tensors_share_a_range() -> None:
    """Values that TensorFlow 2.21 gives; equal ranges need no conversion, signed ones become symmetric."""
    parts = [np.array([10, 200], np.uint8), np.array([3, 250], np.uint8)]
    lows, highs = [np.float32(-1), np.float32(0)], [np.float32(2), np.float32(4)]
    got = check_shapes("QuantizedConcat", np.int32(0), parts, lows, highs, T=DataType.QUINT8)
    assert [x.tolist() for x in got] == [[6, 120, 53, 251], -1.0, 4.0]
    plain = run("QuantizedConcat", np.int32(0), parts, [lows[0]] * 2, [highs[0]] * 2, T=DataType.QUINT8)
    assert plain[0].tolist() == [10, 200, 3, 250]
    wide = [x.astype(np.int32) for x in parts]
    assert run("QuantizedConcat", np.int32(0), wide, lows, highs, T=DataType.QINT32)[1:] == (-4, 4)


def test_reshaping_keeps_the_range() -> None:
    x = np.arange(6, dtype=np.uint8)
    got = check_shapes("QuantizedReshape", x, np.array([2, -1]), *ENDS, T=DataType.QUINT8)
    assert (got[0].tolist(), got[1:]) == ([[0, 1, 2], [3, 4, 5]], ENDS)
