"""Arithmetic on quantised numbers is that on the numbers, up to the steps of the result's range."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.kernels.quantized.ranges import Range, as_floats, zero_of
from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array, DataType
from tests.devices.kernels.harness import check_shapes, run

BYTES: dict[str, Any] = {"T1": DataType.QUINT8, "T2": DataType.QUINT8, "Toutput": DataType.QINT32}
SEEDS = st.integers(0, 99)


def bounds(seed: int) -> tuple[np.float32, np.float32]:
    """A range that contains zero."""
    low, high = np.random.default_rng(seed).uniform(0.1, 9, 2)
    return np.float32(-low), np.float32(high)


def values(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).integers(0, 256, shape).astype(np.uint8)


def floats(x: Array, ends: tuple[np.float32, np.float32]) -> Array:
    """What the integers stand for, in float64."""
    return as_floats(x, Range(*ends)).astype(np.float64)


@given(SEEDS, st.booleans(), st.booleans())
def test_products_of_matrices(seed: int, turn_a: bool, turn_b: bool) -> None:
    """Exact in integers from the zeros of both; the result's range makes them the product of the numbers."""
    a, b, a_ends, b_ends = values(seed, 2, 3), values(seed + 1, 3, 4), bounds(seed), bounds(seed + 1)
    operands = (a.T if turn_a else a), (b.T if turn_b else b)
    product, *ends = check_shapes(
        "QuantizedMatMul", *operands, *a_ends, *b_ends, transpose_a=turn_a, transpose_b=turn_b, **BYTES
    )
    zeros = (zero_of(Range(*ends_of), np.dtype(np.uint8)) for ends_of in (a_ends, b_ends))
    whole = [x.astype(np.int64) - zero for x, zero in zip((a, b), zeros, strict=True)]
    np.testing.assert_array_equal(product, whole[0] @ whole[1])
    np.testing.assert_allclose(
        product * (ends[1] / 2.0**31), floats(a, a_ends) @ floats(b, b_ends), rtol=1e-4, atol=1e-3
    )


@given(SEEDS, st.sampled_from(["SAME", "VALID"]))
def test_convolutions_and_elementwise_products(seed: int, padding: str) -> None:
    """The border stands for zero, whatever integer that is."""
    x, w, x_ends, w_ends = values(seed, 1, 5, 4, 2), values(seed + 1, 3, 2, 2, 3), bounds(seed), bounds(seed + 1)
    attrs: dict[str, Any] = {"strides": [1, 1, 1, 1], "padding": padding}
    types = {"Tinput": DataType.QUINT8, "Tfilter": DataType.QUINT8, "out_type": DataType.QINT32}
    result, *ends = check_shapes("QuantizedConv2D", x, w, *x_ends, *w_ends, **attrs, **types)
    expected = run("Conv2D", floats(x, x_ends), floats(w, w_ends), **attrs)
    np.testing.assert_allclose(result * (ends[1] / 2.0**31), expected, rtol=1e-4, atol=1e-3)
    product, *ends = check_shapes("QuantizedMul", x, x[:, :1], *x_ends, *w_ends, **BYTES)
    expected = floats(x, x_ends) * floats(x[:, :1], w_ends)
    np.testing.assert_allclose(product * (ends[1] / 2.0**31), expected, rtol=1e-4, atol=1e-3)


@given(SEEDS)
def test_sums(seed: int) -> None:
    """In a range with room for many; a bias is added along the last axis."""
    x, y, x_ends, y_ends = values(seed, 2, 3), values(seed + 1, 3), bounds(seed), bounds(seed + 1)
    expected = floats(x, x_ends) + floats(y, y_ends)
    total, low, high = check_shapes("QuantizedAdd", x, y, *x_ends, *y_ends, **BYTES)
    np.testing.assert_allclose(total * (high / 2.0**31), expected, atol=2e-2)
    types = {"T1": DataType.QUINT8, "T2": DataType.QUINT8, "out_type": DataType.QINT32}
    total, low, high = check_shapes("QuantizedBiasAdd", x, y, *x_ends, *y_ends, **types)
    np.testing.assert_allclose(total * (high / 2.0**31), expected, atol=2e-2)
    assert low == -high


def test_values_of_tensorflow() -> None:
    """Numbers that TensorFlow 2.21 gives."""
    ends = map(np.float32, (-1, 2, 0, 4))
    a, b = np.array([[10, 200]], np.uint8), np.array([[3], [250]], np.uint8)
    assert [x.tolist() for x in run("QuantizedMatMul", a, b, *ends, **BYTES)] == [[[28525]], -396306.125, 396306.125]
    ends = map(np.float32, (-1, 2, 0, 4))
    total = run("QuantizedAdd", a, b.T, *ends, **BYTES)
    assert [x.tolist() for x in total] == [[[-27366, 172932]], -65536.0, 65536.0]


def test_rectifiers_keep_the_range() -> None:
    """Values that TensorFlow 2.21 gives: zero is 57 and six is 227."""
    x, types = np.array([10, 100, 250], np.uint8), {"Tinput": DataType.QUINT8, "out_type": DataType.QUINT8}
    low, high = np.float32(-2), np.float32(7)
    assert [y.tolist() for y in check_shapes("QuantizedRelu6", x, low, high, **types)] == [[57, 100, 227], -2.0, 7.0]
    assert check_shapes("QuantizedRelu", x, low, high, **types)[0].tolist() == [57, 100, 250]


def test_matrices_must_fit() -> None:
    """TensorFlow's words."""
    ends = [np.float32(0), np.float32(1)] * 2
    with pytest.raises(InvalidArgumentError, match=r"Matrix size-compatible: In\[0\]: \[2,3\], In\[1\]: \[2,3\]"):
        run("QuantizedMatMul", values(0, 2, 3), values(0, 2, 3), *ends, **BYTES)
    with pytest.raises(InvalidArgumentError, match=r"In\[0\] is not a matrix: \[2\]"):
        run("QuantizedMatMul", values(0, 2), values(0, 2, 3), *ends, **BYTES)
