"""The error function of float32 numbers has TensorFlow's bits."""

from __future__ import annotations

import numpy as np

from partita.devices.kernels.elementwise.erf import erf_float32

POINTS = np.array([1e-10, 0.01, 0.3, 0.5, 0.9, 1.5, 2.7, 3.6, 3.7, 5, -0.5], np.float32)
# np.float32 bits of tf.math.erf(POINTS), TensorFlow 2.21.
BITS = [
    788013593,
    1010359826,
    1051214277,
    1057308539,
    1061945901,
    1064784554,
    1065350962,
    1065353210,
    1065353215,
    1065353216,
    3204792187,
]


def test_bits() -> None:
    """Those of TensorFlow 2.21."""
    assert erf_float32(POINTS).view(np.uint32).tolist() == BITS


def test_places_do_not_matter() -> None:
    """A number has the same result in a large tensor, in a small one, and in a view."""
    x = np.random.default_rng(0).standard_normal((3, 30_000)).astype(np.float32)
    whole = erf_float32(x)
    np.testing.assert_array_equal(erf_float32(x[1, 7:19]), whole[1, 7:19])
    np.testing.assert_array_equal(erf_float32(x[:, ::5]), whole[:, ::5])
    np.testing.assert_array_equal(erf_float32(x[2, 5]), whole[2, 5])
    np.testing.assert_array_equal(erf_float32(-x), -whole)


def test_edges() -> None:
    """Limits at the infinities; what is not a number stays; so does the sign of zero."""
    got = erf_float32(np.array([np.inf, -np.inf, np.nan, -0.0], np.float32))
    np.testing.assert_array_equal(got, np.array([1, -1, np.nan, 0], np.float32))
    assert np.signbit(got[3])
