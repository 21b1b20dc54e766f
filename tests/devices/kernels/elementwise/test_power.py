"""Powers of floats: the values of C's pow for every base and exponent."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.graph.dtypes import Array
from tests.devices.kernels.harness import run

EDGES = (0.0, -0.0, 0.5, 1.0, -1.0, 2.0, -2.0, 2.5, 3.0, -3.0, 7.0, -8.0, math.inf, -math.inf, math.nan)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_edges_are_those_of_numpy(dtype: type) -> None:
    """Every pair of special values, sign of zero included, in arrays and with a scalar exponent."""
    edges: Array = np.array(EDGES, dtype)
    x, y = np.repeat(edges, len(edges)), np.tile(edges, len(edges))
    with np.errstate(all="ignore"):
        expected = np.power(x, y)
    check_same(np.asarray(run("Pow", x, y)), expected)
    for base, exponent, value in zip(x, y, expected, strict=True):
        check_same(np.asarray(run("Pow", base.reshape(1), exponent)), value.reshape(1))


def check_same(value: Array, expected: Array) -> None:
    """Equal to the last bits, and signs of zeros too."""
    np.testing.assert_allclose(value, expected, rtol=4 * float(np.finfo(value.dtype).eps))
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(value[known]), np.signbit(expected[known]))


@given(st.lists(st.floats(-100, 100, width=32), min_size=1, max_size=40), st.sampled_from([2.0, 3.0, -1.0, 4.0, 5.0]))
def test_powers_are_near_the_exact_ones(base: list[float], exponent: float) -> None:
    """Two units in the last place at most, also of negative bases."""
    x = np.array(base, np.float32)
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.float64), exponent)
        limit = 2 * np.spacing(np.abs(exact).astype(np.float32))
        value = np.asarray(run("Pow", x, np.float32(exponent)))
        finite = np.isfinite(exact.astype(np.float32))
        assert (np.abs(value - exact)[finite] <= limit[finite]).all()


def test_shapes_broadcast() -> None:
    """A column of bases to a row of exponents."""
    x, y = np.array([[-2], [3]], np.float32), np.array([1, 2, 3], np.float32)
    np.testing.assert_allclose(np.asarray(run("Pow", x, y)), [[-2, 4, -8], [3, 9, 27]], rtol=1e-6)
