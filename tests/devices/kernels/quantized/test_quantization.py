"""Quantised floats come back within half a step, and on whole steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.kernels.registry import lookup
from partita.errors import InvalidArgumentError, PartitaError, UnimplementedError
from partita.graph.dtypes import DataType, numpy_dtype
from tests.devices.kernels.harness import check_shapes, construct, run, shapes

TYPES = [DataType.QINT8, DataType.QUINT8, DataType.QINT16, DataType.QUINT16]
RANGES = st.tuples(st.floats(-9, 0, width=32), st.floats(0.5, 9, width=32))


@pytest.mark.parametrize("mode", ["MIN_COMBINED", "MIN_FIRST", "SCALED"])
@given(st.sampled_from(TYPES), RANGES, st.integers(0, 99))
def test_quantised_floats_come_back_within_a_step(
    mode: str, dtype: DataType, ends: tuple[float, float], seed: int
) -> None:
    """If they lie in the output range, which contains the requested range."""
    low, high = map(np.float32, ends)
    low = np.float32(0) if mode == "SCALED" and numpy_dtype(dtype).kind == "u" else low
    x = np.random.default_rng(seed).uniform(low, high, 20).astype(np.float32)
    quantised, start, end = run("QuantizeV2", x, low, high, T=dtype, mode=mode)
    node = construct("Dequantize", quantised, start, end, T=dtype, mode=mode)
    factory = lookup("Dequantize")
    assert factory is not None
    back = factory(node)(quantised, start, end)
    step = (float(end) - float(start)) / (2.0 ** (8 * quantised.dtype.itemsize) - 1)
    assert float(start) <= low + step
    assert float(end) >= high - step
    assert np.abs(back - x).max() <= 1.01 * step + 1e-5


@given(RANGES, st.integers(3, 10), st.booleans(), st.booleans(), st.integers(0, 99))
def test_rounding_through_integers_lands_on_whole_steps(
    ends: tuple[float, float], bits: int, narrow: bool, given_range: bool, seed: int
) -> None:
    """Zero is always one of the steps; nothing moves by more than half of one inside the range."""
    low, high = map(np.float32, ends)
    x = np.random.default_rng(seed).uniform(low, high, 20).astype(np.float32)
    attrs = {"num_bits": bits, "narrow_range": narrow, "range_given": given_range}
    got = check_shapes("QuantizeAndDequantizeV2", x, low, high, **attrs)
    limits = (low, high) if given_range else (x.min(), x.max())
    lowest, highest = -(2 ** (bits - 1)) + narrow, 2 ** (bits - 1) - 1
    step = max(limits[0] / lowest, limits[1] / highest, 0)
    np.testing.assert_allclose(got / step, np.round(got / step), atol=1e-2)
    assert np.abs(got - x).max() <= 0.51 * step


def test_each_slice_may_have_its_own_range() -> None:
    """Along `axis`, compared slice by slice."""
    x = np.array([[1, 0.5], [100, 50]], np.float32)
    got = run("QuantizeAndDequantizeV2", x, np.float32(0), np.float32(0), num_bits=4, axis=0, range_given=False)
    alone = [
        run("QuantizeAndDequantizeV2", row, np.float32(0), np.float32(0), num_bits=4, range_given=False) for row in x
    ]
    np.testing.assert_allclose(got, alone)


def test_ranges_are_checked() -> None:
    """Minimum above maximum, and too few bits."""
    one, two = np.float32(1), np.float32(2)
    with pytest.raises(InvalidArgumentError, match="Invalid range"):
        run("QuantizeAndDequantizeV2", np.ones(2, np.float32), two, one, range_given=True)
    with pytest.raises(InvalidArgumentError, match="num_bits is out of range"):
        run("QuantizeAndDequantizeV2", np.ones(2, np.float32), one, two, num_bits=1)


def test_the_range_is_put_out_per_slice() -> None:
    """One end per slice along the axis, scalars without one."""
    assert shapes("QuantizeV2", (2, 3), (3,), (3,), T=DataType.QINT8, axis=1) == [(2, 3), (3,), (3,)]
    assert shapes("QuantizeV2", None, (), (), T=DataType.QINT8) == [None, (), ()]


@pytest.mark.parametrize(
    ("attrs", "ends", "error", "message"),
    [
        ({"mode": "MIN_FIRST", "round_mode": "HALF_TO_EVEN"}, (), InvalidArgumentError, "only supported for mode"),
        ({"axis": 0}, (3,), InvalidArgumentError, "1-D tensor of size 3 and input's axis dimension is of size 2"),
        ({}, (3,), InvalidArgumentError, "min_range must contain a single float element, but it contains 3"),
        ({"mode": "MIN_FIRST", "axis": 1}, (3,), UnimplementedError, "MIN_FIRST mode is not implemented"),
    ],
)
def test_what_cannot_be_quantised(
    attrs: dict[str, Any], ends: tuple[int, ...], error: type[PartitaError], message: str
) -> None:
    """Rounding and axes that a mode lacks, and ends of ranges of another number than there are slices."""
    low, high = np.zeros(ends, np.float32), np.ones(ends, np.float32)
    with pytest.raises(error, match=message):
        run("QuantizeV2", np.ones((2, 3), np.float32), low, high, T=DataType.QINT8, **attrs)


def test_wide_integers_have_the_digits_of_float32() -> None:
    """TensorFlow's own answers."""
    x = np.array([-1.5, 0.1, 2.7], np.float32)
    whole, _, _ = run("QuantizeV2", x, np.float32(-6), np.float32(6), T=DataType.QINT32, mode="MIN_COMBINED")
    assert all(value % 64 == 0 for value in whole.tolist())


def test_ties_of_zero_points_hang_on_float32() -> None:
    """-1 / (2 / 255) is a tie in exact arithmetic, and slightly less in TensorFlow."""
    node = construct("Dequantize", np.uint8(0), np.float32(-1), np.float32(1), T=DataType.QUINT8, mode="MIN_FIRST")
    factory = lookup("Dequantize")
    assert factory is not None
    got = factory(node)(np.array([0], np.uint8), np.float32(-1), np.float32(1))
    np.testing.assert_allclose(got, [-0.99607849], rtol=1e-6)


def test_ends_of_ranges_are_as_many_as_slices() -> None:
    """Where both are known."""
    with pytest.raises(InvalidArgumentError, match="Dimensions must be equal, but are 3 and 2"):
        shapes("Dequantize", (2, 3), (3,), (3,), T=DataType.QINT8, axis=0)
    with pytest.raises(InvalidArgumentError, match="Shape must be rank 0 but is rank 1"):
        shapes("QuantizeV2", (2, 3), (3,), (3,), T=DataType.QINT8)
    with pytest.raises(InvalidArgumentError, match=r"Axis must be less than input dimension\(2\), got 2"):
        shapes("QuantizeV2", (2, 3), (3,), (3,), T=DataType.QINT8, axis=2)
