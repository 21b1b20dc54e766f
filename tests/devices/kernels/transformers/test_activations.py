"""GELU and gated SiLU against their formulas."""

from __future__ import annotations

from math import erf, pi, sqrt

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array
from tests.devices.kernels.harness import check_shapes, run

NUMBERS = hnp.arrays(
    np.float64, hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=5), elements=st.floats(-8, 8, width=16)
)
TYPES = {"float64": 1e-12, "float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2}
STEP = 1e-6


def gelu(x: Array, *, approximate: bool) -> Array:
    """In float64, by the functions of Python."""
    if approximate:
        return np.asarray(x * 0.5 * (1 + np.tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))))
    return np.asarray(x * 0.5 * (1 + np.vectorize(erf, otypes=[np.float64])(x / sqrt(2))))


def silu(x: Array) -> Array:
    """In float64."""
    return np.asarray(x / (1 + np.exp(-x)))


def typed(x: Array, t: str) -> Array:
    """x in a type of numpy or ml_dtypes."""
    return x.astype(np.dtype(getattr(ml_dtypes, t, t)))


@given(NUMBERS, st.booleans(), st.sampled_from(sorted(TYPES)))
def test_gelu(x: Array, approximate: bool, t: str) -> None:
    """Values, and slopes as small steps say, rounded once to the type."""
    given_x, wide = typed(x, t), typed(x, t).astype(np.float64)
    tolerance = TYPES[t]
    y = check_shapes("Partita>Gelu", given_x, approximate=approximate)
    assert y.dtype == given_x.dtype
    np.testing.assert_allclose(y.astype(np.float64), gelu(wide, approximate=approximate), tolerance, tolerance)
    slope = check_shapes("Partita>GeluGrad", given_x, np.ones_like(given_x), approximate=approximate)
    up, down = (gelu(wide + step, approximate=approximate) for step in (STEP, -STEP))
    np.testing.assert_allclose(
        slope.astype(np.float64), (up - down) / (2 * STEP), max(tolerance, 1e-7), 1e-7 + tolerance
    )


@given(NUMBERS, st.sampled_from(sorted(TYPES)))
def test_gated_silu(x: Array, t: str) -> None:
    """silu(gate) * up; its slopes are those of silu times up, and silu."""
    gate, up = typed(x, t), typed(np.cos(x) * 2, t)
    wide, factor = gate.astype(np.float64), up.astype(np.float64)
    tolerance = TYPES[t]
    y = check_shapes("Partita>GatedSilu", gate, up)
    np.testing.assert_allclose(y.astype(np.float64), silu(wide) * factor, tolerance, tolerance)
    d_gate, d_up = check_shapes("Partita>GatedSiluGrad", gate, up, np.ones_like(gate))
    slope = (silu(wide + STEP) - silu(wide - STEP)) / (2 * STEP) * factor
    np.testing.assert_allclose(d_gate.astype(np.float64), slope, max(tolerance, 1e-7), 1e-7 + tolerance)
    np.testing.assert_allclose(d_up.astype(np.float64), silu(wide), tolerance, tolerance)


def test_far_from_zero() -> None:
    """Large numbers pass or vanish, and so do their slopes, without a NaN."""
    x = np.array([-3e4, 3e4], np.float16)
    for approximate in (False, True):
        np.testing.assert_array_equal(run("Partita>Gelu", x, approximate=approximate), [0, 3e4])
        np.testing.assert_array_equal(run("Partita>GeluGrad", x, np.ones_like(x), approximate=approximate), [0, 1])
    np.testing.assert_array_equal(run("Partita>GatedSilu", x, np.ones_like(x)), [0, 3e4])
    np.testing.assert_array_equal(run("Partita>GatedSiluGrad", x, np.ones_like(x), np.ones_like(x))[0], [0, 1])


def test_wrong_inputs_are_named() -> None:
    """Nothing broadcasts."""
    x = np.ones((2, 3), np.float32)
    with pytest.raises(InvalidArgumentError, match=r"d_y has the shape \[3\]"):
        run("Partita>GeluGrad", x, x[0])
    with pytest.raises(InvalidArgumentError, match=r"up has the shape \[3\]"):
        run("Partita>GatedSilu", x, x[0])
    with pytest.raises(InvalidArgumentError, match=r"d_y has the shape \[1,3\]"):
        run("Partita>GatedSiluGrad", x, x, x[:1])
