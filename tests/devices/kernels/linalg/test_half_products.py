"""Sums of products in half types: near the true sums, rounded at every step where TensorFlow rounds."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.kernels.linalg.half_products import PLAIN, Arithmetic, Half, arithmetic_of
from partita.graph.dtypes import Array, DataType

HALF, BFLOAT16 = np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)
STEP = {HALF: 2.0**-10, BFLOAT16: 2.0**-7}  # distance of neighbours relative to the smaller


def drawn(shape: tuple[int, ...], seed: int, dtype: np.dtype[np.generic]) -> Array:
    """Numbers of the type, in float32."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype).astype(np.float32)


@given(
    st.sampled_from([HALF, BFLOAT16]), st.integers(0, 6), st.integers(0, 40), st.integers(0, 30), st.integers(0, 2**16)
)
def test_a_product_is_near_the_true_one_and_of_the_type(
    dtype: np.dtype[np.generic], rows: int, depth: int, columns: int, seed: int
) -> None:
    """Every sum errs by at most one rounding of the sum of magnitudes a step."""
    a, b = drawn((rows, depth), seed, dtype), drawn((depth, columns), seed + 1, dtype)
    actual = Half(dtype).product(a, b)
    bound = (np.abs(a) @ np.abs(b)) * (depth + 2) * STEP[dtype] + 1e-6
    assert actual.shape == (rows, columns)
    assert (np.abs(actual - a.astype(np.float64) @ b) <= bound).all()
    assert (actual.astype(dtype).astype(np.float32) == actual).all()


def test_single_columns_add_products_as_they_are_and_whole_registers_round_them_first() -> None:
    """1 + 2^-11 * (1 + 2^-10) * (1 - 2^-11) is above the tie between 1 and its neighbour,
    and with its product rounded it is the tie."""
    a = np.array([[1, 2.0**-11 * (1 + 2.0**-10)]] * 4, np.float32)
    b = np.array([[1.0], [1 - 2.0**-11]], np.float32)
    assert (Half(HALF).product(a, b) == 1 + 2.0**-10).all()
    assert (Half(HALF).product(a, np.repeat(b, 16, axis=1)) == 1).all()


def test_many_products_are_summed_in_float32() -> None:
    """Beyond a size there is one rounding."""
    a, b = drawn((64, 4096), 0, BFLOAT16), drawn((4096, 128), 1, BFLOAT16)
    ours = Half(BFLOAT16)
    assert (ours.product(a, b) == ours.rounded(a @ b)).all()


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 3.4e38, -0.0, 1.00390625, 1.01171875])
def test_rounding_to_bfloat16_is_that_of_ml_dtypes(value: float) -> None:
    """Ties, overflow and what is no number included."""
    values = np.array([value], np.float32)
    np.testing.assert_array_equal(Half(BFLOAT16).rounded(values), values.astype(BFLOAT16).astype(np.float32))


@pytest.mark.parametrize("arithmetic", [PLAIN, Half(HALF), Half(BFLOAT16)])
def test_sums_of_small_whole_numbers_are_exact(arithmetic: Arithmetic) -> None:
    """Any order gives the same sum of these."""
    values = np.arange(2 * 19 * 17, dtype=np.float32).reshape(2, 19, 17) % 3
    np.testing.assert_array_equal(arithmetic.sum_of_few(values), values.sum(-1))
    np.testing.assert_array_equal(arithmetic.sums_over_rows(values), values.sum(1))


def test_only_half_types_are_rounded_between_steps() -> None:
    """Floats and doubles are summed as they are."""
    assert arithmetic_of(DataType.FLOAT) is arithmetic_of(DataType.DOUBLE) is PLAIN
    assert isinstance(arithmetic_of(DataType.HALF), Half)
    assert isinstance(arithmetic_of(DataType.BFLOAT16), Half)
