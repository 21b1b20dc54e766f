"""Marks pass tensors on; ranks line up; precision falls to that of a smaller type."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from tests.devices.kernels.harness import check_shapes, run


@given(st.lists(st.floats(width=32), min_size=1))
def test_the_precision_of_known_types(values: list[float]) -> None:
    """Eight and seven bits are bfloat16; five and ten are float16 without its subnormal numbers."""
    x = np.array(values, np.float32)
    got = check_shapes("XlaReducePrecision", x, exponent_bits=8, mantissa_bits=7)
    normal = ~((np.abs(x) < 2.0**-126) & (x != 0))
    np.testing.assert_array_equal(got[normal], x.astype(ml_dtypes.bfloat16).astype(np.float32)[normal])
    with np.errstate(over="ignore"):
        half = x.astype(np.float16).astype(np.float32)
    expected = np.where(np.abs(half) < 2.0**-14, np.copysign(np.float32(0), x), half)
    apart = np.abs(np.abs(x) - 2.0**-14) > 2.0**-24
    got = run("XlaReducePrecision", x, exponent_bits=5, mantissa_bits=10)
    np.testing.assert_array_equal(got[apart], expected[apart])


def test_the_narrow_operand_is_widened() -> None:
    """Its axes become those that the third input names."""
    wide, narrow = np.zeros((2, 3, 4)), np.zeros(3)
    left, right = check_shapes("XlaBroadcastHelper", wide, narrow, np.array([1]))
    assert (left.shape, right.shape) == ((2, 3, 4), (1, 3, 1))
    assert run("XlaBroadcastHelper", narrow, wide, np.array([1]))[0].shape == (1, 3, 1)
    none = np.array([], np.int32)
    assert run("XlaBroadcastHelper", wide, np.float64(1), none)[1].shape == ()
    with pytest.raises(InvalidArgumentError, match="broadcast_dims is empty"):
        run("XlaBroadcastHelper", wide, narrow, none)


def test_marks_change_nothing() -> None:
    """A barrier has as many outputs as inputs."""
    x, y = np.ones(2), np.array(3)
    assert check_shapes("XlaSharding", x) is x
    first, second = check_shapes("XlaOptimizationBarrier", [x, y])
    assert first is x
    assert second is y
