"""Normalisation and concatenation of quantised images give TensorFlow's integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import DataType
from tests.devices.kernels.harness import check_shapes, run

IMAGE = np.array([[207, 21], [45, 60], [46, 205], [222, 149], [10, 24], [85, 110]], np.uint8).reshape(1, 2, 3, 2)
ENDS = np.float32(-1), np.float32(3)
QUINT8: dict[str, Any] = {"T": DataType.QUINT8}


def test_instance_norms() -> None:
    """In the range of the numbers, or in a given one; numbers that are all equal have a narrow range."""
    y, low, high = check_shapes("QuantizedInstanceNorm", IMAGE, *ENDS, **QUINT8)
    assert y.reshape(-1).tolist() == [221, 3, 40, 56, 41, 255, 238, 178, 0, 7, 84, 125]
    np.testing.assert_allclose([low, high], [-1.1250168, 1.6427826], rtol=1e-5)
    given: dict[str, Any] = {"output_range_given": True, "given_y_min": -2.0, "given_y_max": 2.0}
    y, *ends = run("QuantizedInstanceNorm", IMAGE, *ENDS, **QUINT8, **given)
    assert y.reshape(-1).tolist() == [209, 58, 83, 95, 84, 233, 221, 179, 56, 61, 114, 142]
    assert ends == [-2, 2]
    y, *ends = run("QuantizedInstanceNorm", np.full_like(IMAGE, 7), *ENDS, **QUINT8)
    assert not y.any()
    assert ends == [0, np.float32(0.001)]


def test_images_have_four_axes() -> None:
    """Others are refused."""
    with pytest.raises(InvalidArgumentError, match=r"Input must be 4 dimensional: \[2,3,2\]"):
        run("QuantizedInstanceNorm", IMAGE[0], *ENDS, **QUINT8)


def test_concatenation_with_the_axis_behind_the_values() -> None:
    """As QuantizedConcat."""
    x = np.array([[177, 188], [8, 29]], np.uint8)
    ends = [np.float32(0), np.float32(-1)], [np.float32(4), np.float32(5)]
    got = check_shapes("QuantizedConcatV2", [x, x], np.int32(0), *ends, **QUINT8)
    expected = run("QuantizedConcat", np.int32(0), [x, x], *ends, **QUINT8)
    for mine, other in zip(got, expected, strict=True):
        np.testing.assert_array_equal(mine, other)
    same = run("QuantizedConcatV2", [x, x], np.int32(-1), *([end, end] for end in ENDS), **QUINT8)
    assert same[0].tolist() == [[177, 188, 177, 188], [8, 29, 8, 29]]
