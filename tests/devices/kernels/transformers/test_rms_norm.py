"""RMSNorm divides each row by the root of the mean of its squares."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array, DataType
from tests.devices.kernels.harness import check_shapes, run

ROWS = hnp.arrays(
    np.float64, hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=5), elements=st.floats(-1e3, 1e3)
)
TYPES = {"float64": 1e-12, "float32": 3e-6, "float16": 2e-3, "bfloat16": 2e-2}


@given(ROWS, st.sampled_from([1e-6, 1e-2]), st.sampled_from(sorted(TYPES)))
def test_values(x: Array, epsilon: float, t: str) -> None:
    """x / sqrt(mean(x^2) + epsilon) * gain, and the factor, in every type."""
    dtype, rtol = np.dtype(getattr(ml_dtypes, t, t)), TYPES[t]
    gain = np.linspace(0.5, 2, x.shape[-1]).astype(dtype)
    x = x.astype(dtype)
    y, factor = check_shapes(
        "Partita>RMSNorm", x, gain, epsilon=epsilon, U=DataType.DOUBLE if t == "float64" else DataType.FLOAT
    )
    wide = x.astype(np.float64)
    wanted = 1 / np.sqrt(np.square(wide).mean(-1) + np.float64(epsilon))
    np.testing.assert_allclose(factor, wanted, max(rtol, 1e-12) if t == "float64" else 1e-5)
    np.testing.assert_allclose(y.astype(np.float64), wide * wanted[..., None] * gain.astype(np.float64), rtol, rtol)


@given(ROWS, st.sampled_from(sorted(TYPES)))
def test_the_scale_of_x_does_not_matter(x: Array, t: str) -> None:
    """Without epsilon 4 x has the y of x, bit for bit, and a quarter of its gradient."""
    dtype = np.dtype(getattr(ml_dtypes, t, t))
    x = (np.abs(x) + 1).astype(dtype) / dtype.type(4)
    gain = np.linspace(0.5, 2, x.shape[-1]).astype(dtype)
    attrs: dict[str, Any] = {"U": DataType.DOUBLE if t == "float64" else DataType.FLOAT}
    y, factor = run("Partita>RMSNorm", x, gain, epsilon=0.0, **attrs)
    same, smaller = run("Partita>RMSNorm", x * dtype.type(4), gain, epsilon=0.0, **attrs)
    np.testing.assert_array_equal(same, y)
    np.testing.assert_array_equal(smaller * 4, factor)
    d_x, d_gain = check_shapes("Partita>RMSNormGrad", x, gain, factor, y, **attrs)
    steeper, same = run("Partita>RMSNormGrad", x * dtype.type(4), gain, smaller, y, **attrs)
    np.testing.assert_array_equal(same, d_gain)
    if t in ("float64", "float32"):
        np.testing.assert_array_equal(steeper * 4, d_x)


def test_half_types_are_summed_in_float32() -> None:
    """Squares beyond float16, and sums over more rows than it counts."""
    x, gain = np.full((5000, 4), 300, np.float16), np.ones(4, np.float16)
    y, factor = run("Partita>RMSNorm", x, gain)
    np.testing.assert_array_equal(y, 1)
    _, d_gain = run("Partita>RMSNormGrad", x, gain, factor, y)
    np.testing.assert_array_equal(d_gain, 5000)


def test_nothing_has_a_norm_too() -> None:
    """No rows: no gradient for the gain; empty rows: the factor of zeros."""
    y, factor = check_shapes("Partita>RMSNorm", np.zeros((0, 3), np.float32), np.ones(3, np.float32))
    d_x, d_gain = check_shapes("Partita>RMSNormGrad", y, np.ones(3, np.float32), factor, y)
    assert (d_x.shape, d_gain.tolist()) == ((0, 3), [0, 0, 0])
    _, factor = check_shapes("Partita>RMSNorm", np.zeros((2, 0), np.float32), np.ones(0, np.float32), epsilon=0.25)
    assert factor.tolist() == [2, 2]


def test_wrong_inputs_are_named() -> None:
    """In the step too, where shapes were unknown before it."""
    x, gain = np.ones((2, 3), np.float32), np.ones(3, np.float32)
    with pytest.raises(InvalidArgumentError, match=r"x has the shape \[2,3\] and gain \[2\]"):
        run("Partita>RMSNorm", x, gain[:2])
    with pytest.raises(InvalidArgumentError, match="U = double, not float"):
        run("Partita>RMSNorm", x.astype(np.float64), gain.astype(np.float64))
    with pytest.raises(InvalidArgumentError, match=r"inverse_rms has the shape \[3\]"):
        run("Partita>RMSNormGrad", x, gain, gain, x)
    with pytest.raises(InvalidArgumentError, match=r"d_y has the shape \[1,3\]"):
        run("Partita>RMSNormGrad", x, gain, x[:, 0], x[:1])
