"""32-bit integers become bytes of another range, and stand for the same numbers as near as a step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.kernels.quantized.ranges import Range, as_floats
from partita.errors import InvalidArgumentError
from partita.graph.dtypes import DataType
from tests.devices.kernels.harness import check_shapes, run

SUMS = np.array([[1000, -2000000, 30000000], [5, 0, -70000000]], np.int32)
EIGHT = np.float32(-8), np.float32(8)
TO_BYTES: dict[str, Any] = {"Tinput": DataType.QINT32, "out_type": DataType.QUINT8}


@given(st.floats(0.125, 9, width=32), st.floats(0, 9, width=32), st.integers(0, 99))
def test_numbers_stay_within_a_step(low: float, high: float, seed: int) -> None:
    """Those in the new range; the others get its nearest end."""
    x = np.random.default_rng(seed).integers(-(2**31), 2**31, 50).astype(np.int32)
    new = Range(np.float32(-low), np.float32(high))
    got, *ends = check_shapes("Requantize", x, *EIGHT, *new, **TO_BYTES)
    assert ends == [*new]
    step = float(new.high - new.low) / 255
    numbers = np.clip(as_floats(x, Range(*EIGHT)), new.low - step / 2, new.high + step / 2)
    np.testing.assert_allclose(as_floats(got, new), numbers, atol=1.05 * step)


def test_values_of_tensorflow() -> None:
    """Bytes and ranges that TensorFlow 2.21 gives."""
    new = np.float32(-0.3), np.float32(0.2)
    assert run("Requantize", SUMS, *EIGHT, *new, **TO_BYTES)[0].tolist() == [[153, 149, 210], [153, 153, 20]]
    signed = run("Requantize", SUMS, *EIGHT, *new, **TO_BYTES | {"out_type": DataType.QINT8})[0]
    assert signed.tolist() == [[25, 21, 82], [25, 25, -108]]
    shrunk = check_shapes("QuantizeDownAndShrinkRange", SUMS, *EIGHT, **TO_BYTES)
    assert shrunk[0].tolist() == [[179, 173, 255], [179, 179, 0]]
    np.testing.assert_allclose(shrunk[1:], [-0.260770320892334, 0.11175870895385742], rtol=1e-6)
    np.testing.assert_array_equal(check_shapes("RequantizationRange", SUMS, *EIGHT, Tinput=DataType.QINT32), shrunk[1:])


def test_each_channel_has_its_scale() -> None:
    """Values that TensorFlow 2.21 gives; a limit bounds the joint range."""
    x = np.array([1000, -2000000, 30000000, -5], np.int32).reshape(1, 1, 2, 2)
    old = np.array([-1, -2], np.float32), np.array([1, 2], np.float32)
    ends = check_shapes("RequantizationRangePerChannel", x, *old, clip_value_max=6.0, T=DataType.QINT32)
    np.testing.assert_allclose(ends, [-0.013969838619232178, 0.013969838619232178], rtol=1e-6)
    limited = run("RequantizationRangePerChannel", x, *old, clip_value_max=0.005, T=DataType.QINT32)
    np.testing.assert_allclose(limited, [-0.005, 0.005], rtol=1e-6)
    types = {"T": DataType.QINT32, "out_type": DataType.QINT8}
    got = check_shapes("RequantizePerChannel", x, *old, np.float32(-0.02), np.float32(0.02), **types)
    assert got[0].reshape(-1).tolist() == [0, -12, 89, 0]


def test_ranges_contain_zero() -> None:
    """TensorFlow's messages for others."""
    with pytest.raises(InvalidArgumentError, match="requested_output_min must be <= 0, but got 1"):
        run("Requantize", SUMS, *EIGHT, np.float32(1), np.float32(2), **TO_BYTES)
    with pytest.raises(InvalidArgumentError, match="requested_output_max must be >= requested_output_min"):
        run("Requantize", SUMS, *EIGHT, np.float32(-1), np.float32(-2), **TO_BYTES)
