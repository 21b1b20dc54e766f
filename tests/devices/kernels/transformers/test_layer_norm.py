"""LayerNorm takes the mean of each row away and divides by its standard deviation."""

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
    np.float64, hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=5), elements=st.floats(-10, 10, width=16)
)
TYPES = {"float64": 1e-9, "float32": 1e-3, "float16": 4e-3, "bfloat16": 3e-2}


@given(ROWS, st.sampled_from([1e-2, 0.5]), st.sampled_from(sorted(TYPES)), st.booleans())
def test_values(x: Array, epsilon: float, t: str, has_wide_gain: bool) -> None:
    """(x - mean) / sqrt(variance + epsilon) * gain + offset, in every type, and with a gain in float32 or float64."""
    dtype, tolerance = np.dtype(getattr(ml_dtypes, t, t)), TYPES[t]
    wide_type = np.dtype(np.float64 if t == "float64" else np.float32)
    gain = np.linspace(0.5, 2, x.shape[-1]).astype(wide_type if has_wide_gain else dtype)
    x, offset = x.astype(dtype), gain - gain.dtype.type(1)
    attrs: dict[str, Any] = {"U": DataType.DOUBLE if t == "float64" else DataType.FLOAT, "epsilon": epsilon}
    y, mean, factor = check_shapes("Partita>LayerNorm", x, gain, offset, **attrs)
    wide = x.astype(np.float64)
    centred = wide - wide.mean(-1, keepdims=True)
    wanted = 1 / np.sqrt(np.square(centred).mean(-1) + np.float64(epsilon))
    np.testing.assert_allclose(mean, wide.mean(-1), 1e-5, 1e-5)
    np.testing.assert_allclose(factor, wanted, min(tolerance, 1e-3))
    whole = centred * wanted[..., None] * gain.astype(np.float64) + offset.astype(np.float64)
    np.testing.assert_allclose(y.astype(np.float64), whole, tolerance, tolerance)
    assert (y.dtype, mean.dtype) == (dtype, wide_type)
    slopes = check_shapes("Partita>LayerNormGrad", x, gain, mean, factor, y, U=attrs["U"])
    assert [slope.dtype for slope in slopes] == [dtype, gain.dtype, gain.dtype]


def test_half_types_are_summed_in_float32() -> None:
    """Values that float16 cannot add up, and sums over more rows than it counts."""
    x = np.tile(np.array([30000, 30002, 30000, 30002], np.float16), (5000, 1))
    gain = np.ones(4, np.float32)
    spread = float(x[0, 1]) - float(x[0, 0])
    y, mean, factor = run("Partita>LayerNorm", x, gain, gain * 0)
    np.testing.assert_array_equal(mean, 30000 + spread / 2)
    _, d_gain, d_offset = run("Partita>LayerNormGrad", x, gain, mean, factor, np.ones_like(y))
    np.testing.assert_array_equal(d_offset, 5000)
    np.testing.assert_allclose(d_gain, np.sum(y.astype(np.float64), 0), 1e-3)


def test_nothing_has_a_norm_too() -> None:
    """No rows: no gradient for the gain; empty rows: the factor of zeros."""
    gain = np.ones(3, np.float32)
    y, mean, factor = check_shapes("Partita>LayerNorm", np.zeros((0, 3), np.float32), gain, gain)
    slopes = check_shapes("Partita>LayerNormGrad", y, gain, mean, factor, y)
    assert (slopes[0].shape, slopes[1].tolist(), slopes[2].tolist()) == ((0, 3), [0, 0, 0], [0, 0, 0])
    _, _, factor = check_shapes("Partita>LayerNorm", np.zeros((2, 0), np.float32), gain[:0], gain[:0], epsilon=0.25)
    assert factor.tolist() == [2, 2]


def test_wrong_inputs_are_named() -> None:
    """In the step too, where shapes were unknown before it."""
    x, gain = np.ones((2, 3), np.float32), np.ones(3, np.float32)
    with pytest.raises(InvalidArgumentError, match=r"x has the shape \[2,3\] and gain \[2\]"):
        run("Partita>LayerNorm", x, gain[:2], gain[:2])
    with pytest.raises(InvalidArgumentError, match=r"offset has the shape \[2\]"):
        run("Partita>LayerNorm", x, gain, gain[:2])
    with pytest.raises(InvalidArgumentError, match="U = double, not float"):
        run("Partita>LayerNorm", *(each.astype(np.float64) for each in (x, gain, gain)))
    with pytest.raises(InvalidArgumentError, match=r"mean has the shape \[3\]"):
        run("Partita>LayerNormGrad", x, gain, gain, x[:, 0], x)
    with pytest.raises(InvalidArgumentError, match=r"d_y has the shape \[1,3\]"):
        run("Partita>LayerNormGrad", x, gain, x[:, 0], x[:, 0], x[:1])
