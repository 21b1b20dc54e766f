"""The exponential of float32: TensorFlow's bits, the true value nearly, and its ends."""

from __future__ import annotations

import numpy as np
from hypothesis import given

from partita.devices.kernels.elementwise.exponential import exp_float32
from partita.graph.dtypes import Array
from tests.devices.kernels.draws import FLOAT_TYPES, arrays

# What Exp of TensorFlow 2.21 gives on a CPU for these numbers at once.
NUMBERS = [-87.0, -10.5, -2.3, -1e-3, 0.1, 0.75, 5.5, 88.0]
BITS = [0x00B33687, 0x37E6FE14, 0x3DCD5483, 0x3F7FBE7F, 0x3F8D763E, 0x40077CEE, 0x4374B122, 0x7EF882B7]


def test_has_tensorflows_bits() -> None:
    """For positive and negative, large and small numbers."""
    np.testing.assert_array_equal(exp_float32(np.array(NUMBERS, np.float32)).view(np.uint32), np.array(BITS, np.uint32))


@given(arrays([np.dtype(np.float32)], -80, 80))
def test_is_a_unit_off_at_most(x: Array) -> None:
    """Compared with double precision."""
    np.testing.assert_allclose(exp_float32(x), np.exp(x.astype(np.float64)), rtol=2.0**-22)


@given(arrays([np.dtype(np.float32)]))
def test_a_number_alone_has_the_bits_it_has_among_others(x: Array) -> None:
    """A scalar and the element of an array give the same bits."""
    with np.errstate(all="ignore"):
        among = exp_float32(x.reshape(-1))
        alone = np.array([exp_float32(one) for one in x.reshape(-1)], np.float32)
    np.testing.assert_array_equal(alone, among)


@given(arrays(FLOAT_TYPES))
def test_keeps_type_and_shape(x: Array) -> None:
    """Other types than float32 take numpy's function."""
    assert (exp_float32(x).dtype, exp_float32(x).shape) == (x.dtype, x.shape)


def test_the_ends() -> None:
    """Overflow, underflow, infinities and NaN; large arrays take numpy's function."""
    with np.errstate(all="ignore"):
        got = exp_float32(np.array([89, -104, np.inf, -np.inf, np.nan], np.float32))
    np.testing.assert_array_equal(got, [np.inf, 0, np.inf, 0, np.nan])
    large = np.linspace(-3, 3, 1 << 15, dtype=np.float32)
    np.testing.assert_array_equal(exp_float32(large), np.exp(large))
