"""Logarithms are near the true ones and have TensorFlow's bits."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from partita.devices.kernels.elementwise.logarithm import log_float32


@given(st.lists(st.floats(2.0**-126, 2.0**127, width=32), min_size=1, max_size=20))
def test_logarithms_are_a_few_units_off_at_most(numbers: list[float]) -> None:
    """Near one, too, where they vanish."""
    values = np.array(numbers, np.float32)
    np.testing.assert_allclose(log_float32(values), np.log(values.astype(np.float64)), rtol=3e-7)


def test_logarithms_of_what_is_no_number() -> None:
    """NaN beside numbers stays where it is; the logarithm of one is zero."""
    np.testing.assert_array_equal(log_float32(np.array([np.nan, 1], np.float32)), [np.nan, 0])


def test_the_last_few_are_rounded_once() -> None:
    """Numbers beyond whole registers; those in a register do not depend on them."""
    values = np.random.default_rng(0).uniform(0.5, 40, 13).astype(np.float32)
    exact = np.log(values.astype(np.float64)).astype(np.float32)
    np.testing.assert_array_equal(log_float32(values)[8:], exact[8:])
    np.testing.assert_array_equal(log_float32(values)[:8], log_float32(values[:8]))


def test_logarithms_have_tensorflows_bits() -> None:
    """What Log of TensorFlow 2.21 gives for eight numbers at once."""
    values = np.array([0.1, 0.7, 0.71, 1.1, 1.4, 3, 10, 1000], np.float32)
    assert log_float32(values).view(np.uint32).tolist() == [
        *(0xC0135D8E, 0xBEB69E1A, 0xBEAF5AE5, 0x3DC331FF, 0x3EAC4616, 0x3F8C9F54, 0x40135D8E, 0x40DD0C55)
    ]
