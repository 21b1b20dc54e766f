"""Tanh of float32: TensorFlow's bits, the laws it keeps, and numpy's function where that takes over."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from partita.devices.kernels.elementwise.tanh import tanh_float32
from partita.graph.dtypes import Array
from tests.devices.kernels.draws import arrays
from tests.devices.kernels.harness import run

# Bits that TensorFlow 2.21 gives on a CPU; at 0.1, 4.1, 5.5, 7.9 and 7.91 they are not those of the nearest float32.
GOLDEN = {
    1e-4: 0x38D1B717,
    5e-4: 0x3A03126E,
    0.1: 0x3DCC1EBD,
    0.75: 0x3F22991F,
    -2.3: 0xBF7AE799,
    4.1: 0x3F7FDC02,
    5.5: 0x3F7FFDCF,
    7.2: 0x3F7FFFED,
    7.9: 0x3F7FFFFD,
    7.91: 0x3F800000,
    -np.inf: 0xBF800000,
}


@pytest.mark.parametrize("shape", [(), (1,), (3, 5)])
def test_has_tensorflows_bits(shape: tuple[int, ...]) -> None:
    """In tensors of any shape."""
    for x, bits in GOLDEN.items():
        value = np.asarray(run("Tanh", np.full(shape, x, np.float32)))
        assert value.shape == shape
        assert set(value.reshape(-1).view(np.uint32).tolist()) == {bits}


@given(arrays([np.dtype(np.float32)], -12, 12))
def test_is_odd_bounded_and_near_the_true_value(x: Array) -> None:
    """tanh(-x) = -tanh(x), no value beyond 1, six units in the last place at most from the truth."""
    value = np.asarray(tanh_float32(x))
    np.testing.assert_array_equal(tanh_float32(-x), -value)
    assert (np.abs(value) <= 1).all()
    np.testing.assert_allclose(value, np.tanh(x.astype(np.float64)), rtol=6 * 2.0**-23)


def test_nothing_and_no_number() -> None:
    """An empty tensor stays empty, NaN stays NaN, and the sign of zero is kept."""
    assert tanh_float32(np.zeros((0, 3), np.float32)).shape == (0, 3)
    assert np.isnan(tanh_float32(np.array([np.nan], np.float32)))
    assert np.signbit(tanh_float32(np.array(-0.0, np.float32)))


@given(arrays([np.dtype(np.float32)]))
def test_a_number_alone_has_the_bits_it_has_among_others(x: Array) -> None:
    """A scalar and the element of a small array give the same bits."""
    x = x.reshape(-1)[:63]
    among = np.asarray(tanh_float32(x))
    alone = np.array([tanh_float32(one) for one in x], np.float32)
    np.testing.assert_array_equal(alone.view(np.uint32)[~np.isnan(among)], among.view(np.uint32)[~np.isnan(among)])
    np.testing.assert_array_equal(np.isnan(alone), np.isnan(among))


def test_large_tensors_take_numpys_function() -> None:
    """Large tensors may differ from TensorFlow in the last bit, and are faster."""
    x = np.linspace(-9, 9, 1 << 15, dtype=np.float32)
    np.testing.assert_array_equal(tanh_float32(x), np.tanh(x))
    np.testing.assert_allclose(tanh_float32(x[1:]), np.tanh(x[1:]), rtol=1e-6)
