"""Uniform quantisation has a scale and a zero point, for all elements or for each slice of an axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import DataType
from tests.devices.kernels.harness import check_shapes, run

LIMITS: dict[str, Any] = {"quantization_min_val": -127, "quantization_max_val": 127}


def test_ties_go_up() -> None:
    """And integers outside of the limits to the nearest; values that TensorFlow 2.21 gives."""
    x = np.array([-1.3, -0.25, 0.125, 0.25, 0.375, 0.5, 9, -99], np.float32)
    got = check_shapes("UniformQuantize", x, np.float32(0.25), np.int32(3), Tout=DataType.QINT8, **LIMITS)
    assert got.tolist() == [-2, 2, 4, 4, 5, 5, 39, -127]


def test_there_and_back_along_an_axis() -> None:
    """Within half a step of each slice, and into other steps."""
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    scales, zeros = np.array([0.1, 0.05, 0.04], np.float32), np.array([1, -2, 0], np.int32)
    along: dict[str, Any] = LIMITS | {"quantization_axis": 0}
    whole = check_shapes("UniformQuantize", x, scales, zeros, Tout=DataType.QINT8, **along)
    back = check_shapes("UniformDequantize", whole, scales, zeros, Tin=DataType.QINT8, Tout=DataType.FLOAT, **along)
    assert (np.abs(back - x) <= scales[:, None] * 0.501).all()
    other = check_shapes(
        "UniformRequantize",
        *(whole, scales, zeros, np.float32(0.2), np.int32(5)),
        Tin=DataType.QINT8,
        Tout=DataType.QINT8,
        input_quantization_axis=0,
        **{f"{side}_{name}": value for side in ("input", "output") for name, value in LIMITS.items()},
    )
    np.testing.assert_array_equal(other, np.floor(back / np.float32(0.2) + np.float32(0.5)) + 5)


def test_scales_fit_the_axis() -> None:
    """And are positive."""
    x = np.ones((2, 3), np.float32)
    with pytest.raises(InvalidArgumentError, match="must have the size of axis 1, 3"):
        run(
            "UniformQuantize",
            *(x, np.ones(2, np.float32), np.zeros(2, np.int32)),
            Tout=DataType.QINT8,
            **LIMITS | {"quantization_axis": 1},
        )
    with pytest.raises(InvalidArgumentError, match="All scales elements must be positive"):
        run("UniformQuantize", x, np.float32(0), np.int32(0), Tout=DataType.QINT8, **LIMITS)
