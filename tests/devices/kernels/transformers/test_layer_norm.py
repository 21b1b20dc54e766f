"""Layer normalisation centres each row and divides it by its deviation."""

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
TYPES = {"float64": 1e-12, "float32": 1e-5, "float16": 4e-3, "bfloat16": 4e-2}


def sums_of(t: str) -> dict[str, Any]:
    """The type of the numbers per row, as an attr."""
    return {"U": DataType.DOUBLE if t == "float64" else DataType.FLOAT}


@given(ROWS, st.sampled_from([1e-2, 0.5]), st.sampled_from(sorted(TYPES)))
def test_a_row_is_normalised(x: Array, epsilon: float, t: str) -> None:
    """(x - mean) / sqrt(variance + epsilon) * gain + offset, and the mean and the factor, in every type."""
    dtype, tolerance = np.dtype(getattr(ml_dtypes, t, t)), TYPES[t]
    x, epsilon = x.astype(dtype), float(np.float32(epsilon))
    gain, offset = (np.linspace(low, 2, x.shape[-1]).astype(dtype) for low in (0.5, -1))
    y, mean, factor = check_shapes("Partita>LayerNorm", x, gain, offset, epsilon=epsilon, **sums_of(t))
    wide = x.astype(np.float64)
    wanted_factor = 1 / np.sqrt(wide.var(-1) + epsilon)
    wanted = (wide - wide.mean(-1, keepdims=True)) * wanted_factor[..., None]
    np.testing.assert_allclose(mean, wide.mean(-1), rtol=1e-5, atol=1e-5 if t != "float64" else 1e-13)
    np.testing.assert_allclose(factor, wanted_factor, rtol=1e-4 if t != "float64" else 1e-12)
    np.testing.assert_allclose(
        y.astype(np.float64), wanted * gain.astype(np.float64) + offset.astype(np.float64), tolerance, 10 * tolerance
    )


@given(ROWS, st.sampled_from(sorted(TYPES)))
def test_slopes_of_a_row_add_up_to_nothing(x: Array, t: str) -> None:
    """A row that is moved keeps its y; slopes of gain and offset are sums over rows."""
    dtype, tolerance = np.dtype(getattr(ml_dtypes, t, t)), TYPES[t]
    x = x.astype(dtype)
    gain = np.linspace(0.5, 2, x.shape[-1]).astype(dtype)
    y, mean, factor = run("Partita>LayerNorm", x, gain, np.zeros_like(gain), epsilon=0.5, **sums_of(t))
    d_x, d_gain, d_offset = check_shapes("Partita>LayerNormGrad", x, gain, mean, factor, y, **sums_of(t))
    np.testing.assert_allclose(d_x.astype(np.float64).sum(-1), 0, atol=300 * tolerance)
    rows = y.astype(np.float64).reshape(-1, x.shape[-1])
    np.testing.assert_allclose(d_offset.astype(np.float64), rows.sum(0), atol=300 * tolerance)
    slopes = (rows * rows).sum(0) / gain.astype(np.float64)
    np.testing.assert_allclose(d_gain.astype(np.float64), slopes, 10 * tolerance, 300 * tolerance)


def test_empty_rows_and_no_rows() -> None:
    """They have the factor of epsilon alone, and slopes of nothing."""
    y, mean, factor = run("Partita>LayerNorm", np.ones((2, 0), np.float32), *[np.ones(0, np.float32)] * 2, epsilon=0.25)
    assert y.shape == (2, 0)
    assert mean.tolist() == [0, 0]
    assert factor.tolist() == [2, 2]
    none = np.ones((0, 3), np.float32)
    slopes = run("Partita>LayerNormGrad", none, np.ones(3, np.float32), *[np.ones(0, np.float32)] * 2, none)
    assert [slope.tolist() for slope in slopes] == [[], [0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize(
    ("op", "shapes", "message"),
    [
        ("LayerNorm", [(2, 3), (4,), (3,)], r"x has the shape \[2,3\] and gain \[4\]; it must be \[3\]"),
        ("LayerNorm", [(2, 3), (3,), (1,)], r"and offset \[1\]; it must be \[3\]"),
        ("LayerNorm", [(), (1,), (1,)], "it must be a vector as long as the last axis of x"),
        ("LayerNormGrad", [(2, 3), (3,), (3,), (2,), (2, 3)], r"and mean \[3\]; it must be \[2\]"),
        ("LayerNormGrad", [(2, 3), (3,), (2,), (2,), (2, 2)], r"and d_y \[2,2\]; it must be \[2,3\]"),
    ],
)
def test_shapes_that_do_not_fit(op: str, shapes: list[tuple[int, ...]], message: str) -> None:
    """They are refused, with the input by name."""
    with pytest.raises(InvalidArgumentError, match=message):
        run(f"Partita>{op}", *(np.ones(shape, np.float32) for shape in shapes))
